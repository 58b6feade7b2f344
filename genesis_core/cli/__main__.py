"""`python -m genesis_core.cli` does what the command `genesis-studio` does."""

import sys

from genesis_core.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
