"""One process per device with gs.launch: variables, results, tracebacks and a common end are taken care of.

python examples/launch.py             every GPU of this machine, or the CPU
python examples/launch.py cpu:2       two processes that share the CPU cores
python examples/launch.py 0,2         GPUs 0 and 2, as nvidia-smi counts them
"""

import sys
import time

import genesis_core as gs


def throughput(rank: int, n_envs: int, steps: int) -> dict:
    """Runs in a process of its own, which finds its device in its environment."""
    gs.init(backend=gs.gpu, seed=rank, logging_level="error")
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.01))
    scene.add_entity(gs.morphs.Plane())
    arm = scene.add_entity(gs.morphs.MJCF(file="arm/arm.xml"))
    scene.build(n_envs=n_envs, env_spacing=(1.0, 1.0))
    start = time.perf_counter()
    for _ in range(steps):
        scene.step()
    seconds = time.perf_counter() - start
    reach = arm.get_links_pos()[:, -1].norm(dim=1).mean()
    return {"device": str(gs.device), "rate": n_envs * steps / seconds, "reach": float(reach)}


if __name__ == "__main__":
    devices = sys.argv[1] if len(sys.argv) > 1 else "all"
    results = gs.launch(throughput, devices, kwargs={"n_envs": 256, "steps": 100})
    for rank, result in enumerate(results):
        print(f"rank {rank} on {result['device']}: {result['rate']:,.0f} steps/s, mean reach {result['reach']:.3f} m")
    print(f"together {sum(result['rate'] for result in results):,.0f} steps/s")
