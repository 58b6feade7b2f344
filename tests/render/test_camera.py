"""The camera's mathematics, without GL."""

import numpy as np
import pytest

from genesis_core.render.camera import Camera


def project(camera: Camera, point, width=640, height=480):
    p = camera.projection(width / height) @ camera.view() @ np.array([*point, 1.0])
    return (p[0] / p[3] + 1) / 2 * width, (1 - p[1] / p[3]) / 2 * height


def test_the_look_at_point_is_in_the_middle():
    camera = Camera((1, 2, 3), 5, 30, -40)
    np.testing.assert_allclose(project(camera, (1, 2, 3)), (320, 240), atol=1e-9)


def test_azimuth_90_looks_along_y_with_x_to_the_right():
    camera = Camera((0, 0, 0), 3, 90, 0)
    np.testing.assert_allclose(camera.forward, (0, 1, 0), atol=1e-12)
    np.testing.assert_allclose(camera.eye, (0, -3, 0), atol=1e-12)
    assert project(camera, (1, 0, 0))[0] > 320
    assert project(camera, (0, 0, 1))[1] < 240


@pytest.mark.parametrize("pixel", [(0.0, 0.0), (320.0, 240.0), (600.0, 17.0)])
def test_the_ray_through_a_pixel_projects_back_to_it(pixel):
    camera = Camera((0.3, -1, 0.2), 2.5, 77, -12, fovy=55)
    eye, direction = camera.ray(*pixel, 640, 480)
    np.testing.assert_allclose(project(camera, eye + 4 * direction), pixel, atol=1e-6)


def test_panning_keeps_the_point_under_the_pointer():
    camera = Camera((0, 0, 0), 4, 20, -30)
    point = camera.lookat.copy()
    camera.pan(0.1, -0.05)
    np.testing.assert_allclose(project(camera, point), (320 + 48, 240 - 24), atol=1e-6)


def test_framing_fits_a_ball_into_the_picture():
    camera = Camera()
    camera.frame((1, 1, 1), 2.0)
    top = camera.lookat + 2.0 * camera.up
    assert 0 <= project(camera, top)[1] < 240


def test_elevation_never_tips_over_and_distance_stays_positive():
    camera = Camera()
    camera.orbit(0, 10)
    camera.zoom(100)
    assert -90 < camera.elevation < 90
    assert camera.distance > 0


def test_a_camera_from_a_pose_looks_the_same_way():
    half = np.sqrt(0.5)
    camera = Camera.from_pose((0, -2, 1), (half, half, 0, 0), 45)  # turned about x: -z becomes +y
    np.testing.assert_allclose(camera.forward, (0, 1, 0), atol=1e-12)
    np.testing.assert_allclose(camera.eye, (0, -2, 1), atol=1e-12)
