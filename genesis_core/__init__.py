"""Genesis Studio: batched simulation of robot scenes."""
