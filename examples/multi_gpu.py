"""One process per GPU with plain multiprocessing: each sets the three variables before anything asks for a GPU.

    python examples/multi_gpu.py          every GPU of this machine, or two processes on the CPU
    python examples/multi_gpu.py 4        four processes

examples/launch.py does the same with gs.launch, which also brings back results and tracebacks, and stops all together.
"""

import multiprocessing
import os
import sys
import time


def run(index: int, count: int) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = str(index)  # torch and CUDA
    os.environ["QD_VISIBLE_DEVICE"] = str(index)  # the simulation
    os.environ["EGL_DEVICE_ID"] = str(index)  # off-screen pictures
    os.environ["GENESIS_THREADS"] = str(max(1, (os.cpu_count() or 1) // count))  # of the CPU

    import genesis_core as gs

    gs.init(backend=gs.gpu, seed=index, logging_level="error")
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.01))
    scene.add_entity(gs.morphs.Plane())
    arm = scene.add_entity(gs.morphs.MJCF(file="arm/arm.xml"))
    n_envs = 256
    scene.build(n_envs=n_envs, env_spacing=(1.0, 1.0))
    steps = 100
    start = time.perf_counter()
    for _ in range(steps):
        scene.step()
    rate = n_envs * steps / (time.perf_counter() - start)
    print(f"process {index}: {gs.backend} on {gs.device}, {rate:,.0f} steps/s, {arm.n_dofs} dofs", flush=True)
    gs.destroy()


def number_of_gpus() -> int:
    from genesis_core.backend.devices import inventory  # asks NVML: no CUDA context in this process

    return sum(not gpu.simulate for gpu in inventory(with_egl=False).of_kind("cuda"))


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else number_of_gpus() or 2
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    processes = [context.Process(target=run, args=(index, count)) for index in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(any(process.exitcode for process in processes))
