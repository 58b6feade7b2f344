"""The first script: a robot arm and a box, 16 environments, on the best device there is."""

import genesis_core as gs

gs.init(backend=gs.gpu, seed=0)

scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.005))
scene.add_entity(gs.morphs.Plane())
arm = scene.add_entity(gs.morphs.MJCF(file="arm/arm.xml"))
box = scene.add_entity(gs.morphs.Box(size=(0.06, 0.06, 0.06), pos=(0.45, 0.0, 0.5)))

scene.build(n_envs=16, env_spacing=(1.5, 1.5))

arm.control_dofs_position([0.0, 0.3, 0.0, -1.8, 0.0, 1.0, 0.0, 0.04, 0.04])
for _ in range(400):
    scene.step()

print("device:", gs.device, "backend:", gs.backend)
print("arm joints of environment 0:", arm.get_dofs_position()[0])
print("box heights:", box.get_pos()[:, 2])
