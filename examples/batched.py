"""Thousands of environments at once: 2048 quadrupeds, each with its own target pose, stepped together."""

import time

import torch

import genesis_core as gs

gs.init(backend=gs.gpu, seed=0, logging_level="warning")

scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.01, substeps=2))
scene.add_entity(gs.morphs.Plane())
dog = scene.add_entity(gs.morphs.MJCF(file="quadruped/quadruped.xml", pos=(0.0, 0.0, 0.02), default_armature=None))

n_envs = 2048
scene.build(n_envs=n_envs, env_spacing=(1.0, 1.0))

legs = [j.dof_start for j in dog.joints if j.type == gs.JOINT_TYPE.REVOLUTE]
stand = torch.tensor([0.0, 0.75, -1.5] * 4, device=gs.device)
dog.set_dofs_position(stand, legs)

steps = 200
start = time.perf_counter()
for i in range(steps):
    if i % 20 == 0:
        targets = stand + 0.05 * torch.randn(n_envs, len(legs), device=gs.device)
        dog.control_dofs_position(targets, legs)
    scene.step()
seconds = time.perf_counter() - start

height = dog.get_pos()[:, 2]
print(
    f"{n_envs} environments, {steps} steps of {scene.dt} s in {seconds:.2f} s: {n_envs * steps / seconds:,.0f} steps/s"
)
print(f"trunk height: mean {height.mean():.3f} m, lowest {height.min():.3f} m")
