"""Pictures hold what they must, where it must be."""

import numpy as np
import pytest

from genesis_core.errors import RenderError
from genesis_core.layout.scene import initial_rows

pytestmark = pytest.mark.gl
egl = pytest.importorskip("genesis_core.render.egl")
try:
    egl.EglContext().close()
except RenderError as error:
    pytest.skip(f"no off-screen OpenGL: {error}", allow_module_level=True)

from genesis_core.render.camera import Camera  # noqa: E402
from genesis_core.render.offscreen import OffscreenRenderer, tile  # noqa: E402
from genesis_core.render.picking import pick  # noqa: E402
from genesis_core.render.quality import Quality  # noqa: E402
from tests.render.scenes import color_at, compiled  # noqa: E402

W, H = 320, 240
ORIGIN = np.zeros((1, 3))
RED_BOX = '<geom type="box" size=".2 .2 .2" rgba="1 0 0 1"/>'


@pytest.fixture
def render():
    """render(bundle, camera, offsets, rows) -> picture; closes its renderers."""
    opened = []

    def draw(bundle, camera, offsets=ORIGIN, rows=None):
        renderer = OffscreenRenderer(bundle, W, H)
        opened.append(renderer)
        rows = np.repeat(initial_rows(bundle)[None], len(offsets), 0) if rows is None else rows
        return renderer.render(camera, rows, offsets)

    draw.opened = opened
    yield draw
    for renderer in opened:
        renderer.close()


def test_a_red_box_is_red_where_it_stands_and_nowhere_else(render):
    picture = render(compiled(RED_BOX), Camera((0, 0, 0), 2, 90, -20))
    r, g, b = color_at(picture, W // 2, H // 2)
    assert r > 100 and g < 60 and b < 60
    r, g, b = color_at(picture, 10, H // 2)
    assert abs(r - g) < 60 and b >= r - 10


def test_what_is_nearer_hides_what_is_behind(render):
    both = compiled(RED_BOX + '<geom type="box" pos="0 .8 0" size=".3 .3 .3" rgba="0 0 1 1"/>')
    front = color_at(render(both, Camera((0, 0, 0), 3, 90, 0)), W // 2, H // 2)
    back = color_at(render(both, Camera((0, 0.8, 0), 3, -90, 0)), W // 2, H // 2)
    assert front[0] > 100 > front[2]
    assert back[2] > 100 > back[0]


def test_a_body_darkens_the_floor_in_its_shadow(render):
    floor = '<geom type="plane" size="0 0 1" rgba=".6 .6 .6 1"/>'
    ball = '<geom type="sphere" pos="0 0 1.2" size=".5" rgba=".2 .8 .2 1"/>'
    camera = Camera((-0.6, 0.49, 0), 6, 90, -80)  # the shadow falls away from the sun at (0.42, -0.34, 0.84)
    lit = color_at(render(compiled(floor), camera), W // 2, H // 2)
    shaded = color_at(render(compiled(floor + ball), camera), W // 2, H // 2)
    assert shaded.mean() < 0.75 * lit.mean()


@pytest.mark.parametrize("n", [1, 3])
def test_robots_that_walked_far_away_keep_their_shadows(render, n):
    floor = '<geom type="plane" size="0 0 1" rgba=".6 .6 .6 1"/>'
    ball = '<body pos="0 0 1.2"><freejoint/><geom type="sphere" size=".5" rgba=".2 .8 .2 1"/></body>'
    bundle = compiled(floor + ball)
    rows = np.repeat(initial_rows(bundle)[None], n, 0)
    rows[:, 1, 3] += 40.0
    offsets = np.array([[0.0, 5.0 * i, 0.0] for i in range(n)])
    camera = Camera((39.4, 0.49, 0), 6, 90, -80)
    lit = color_at(render(compiled(floor), camera), W // 2, H // 2)
    shaded = color_at(render(bundle, camera, offsets, rows), W // 2, H // 2)
    assert shaded.mean() < 0.75 * lit.mean()


def test_a_capsule_keeps_round_ends_whatever_its_length(render):
    capsule = '<geom type="capsule" size=".2 {}" rgba="1 0 0 1"/>'
    widths = []
    for half in (0.1, 1.0):
        picture = render(compiled(capsule.format(half)), Camera((0, 0, half + 0.2), 2, 90, 0))
        red = (picture[..., 0] > 90) & (picture[..., 1] < 80)
        rows = np.flatnonzero(red.any(axis=1))
        widths.append(red[rows[0] + 6].sum())
    assert 10 < widths[0] < 80
    assert abs(widths[0] - widths[1]) <= 3


def test_environments_stand_at_their_offsets(render):
    offsets = np.array([[x, y, 0.0] for x in (-3, 0, 3) for y in (-3, 0, 3)])
    camera = Camera((0, 0, 0), 12, 90, -89)
    picture = render(compiled(RED_BOX), camera, offsets)
    matrix = camera.projection(W / H) @ camera.view()
    for offset in offsets:
        p = matrix @ np.array([*offset, 1.0])
        x, y = (p[0] / p[3] + 1) / 2 * W, (1 - p[1] / p[3]) / 2 * H
        r, g, _ = color_at(picture, round(x), round(y))
        assert r > 100 > g, offset


def test_new_poses_move_the_picture(render):
    bundle = compiled(RED_BOX)
    rows = initial_rows(bundle)[None].copy()
    rows[:, :, 3] += 0.6
    picture = render(bundle, Camera((0, 0, 0), 2, 90, 0), rows=rows)
    assert color_at(picture, W // 2, H // 2)[0] < 120
    red = (picture[..., 0] > 100) & (picture[..., 1] < 60)
    assert np.flatnonzero(red.any(axis=0)).mean() > W * 0.6


def test_a_texture_is_seen(render):
    asset = (
        '<texture name="t" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 1 0" width="64" height="64"/>'
        '<material name="m" texture="t" texrepeat="2 2"/>'
    )
    bundle = compiled('<geom type="box" size=".5 .5 .05" material="m"/>', asset)
    picture = render(bundle, Camera((0, 0, 0), 2.5, 90, -89))
    red = (picture[..., 0] > 100) & (picture[..., 1] < 90)
    green = (picture[..., 1] > 100) & (picture[..., 0] < 90)
    assert red.sum() > 1000 and green.sum() > 1000


def test_hidden_groups_are_not_drawn(render):
    bundle = compiled(RED_BOX.replace("/>", ' group="3"/>'))
    camera = Camera((0, 0, 0), 2, 90, 0)
    hidden = color_at(render(bundle, camera), W // 2, H // 2)
    renderer = render.opened[-1]
    renderer.scene.set_groups({3})
    shown = color_at(renderer.render(camera, initial_rows(bundle)[None], ORIGIN), W // 2, H // 2)
    assert hidden[0] < 100 < shown[0]


def test_see_through_geoms_are_blended(render):
    behind = '<geom type="box" pos="0 .8 0" size=".3 .3 .3" rgba="0 0 1 1"/>'
    bundle = compiled(RED_BOX.replace("1 0 0 1", "1 0 0 .5") + behind)
    r, _, b = color_at(render(bundle, Camera((0, 0, 0), 3, 90, 0)), W // 2, H // 2)
    assert r > 60 and b > 60


def test_picking_names_the_geom_the_environment_and_the_point(render):
    offsets = np.array([[-1.0, 0, 0], [1.0, 0, 0]])
    bundle = compiled('<geom type="plane" size="0 0 1" pos="0 0 -.2"/>' + RED_BOX)
    camera = Camera((0, 0, 0), 5, 90, 0)
    render(bundle, camera, offsets)
    scene = render.opened[-1].scene
    matrix = camera.projection(W / H) @ camera.view()
    p = matrix @ np.array([1.0, -0.2, 0.0, 1.0])
    found = pick(scene, camera, W, H, (p[0] / p[3] + 1) / 2 * W, (1 - p[1] / p[3]) / 2 * H)
    assert found is not None and (found.row, found.geom) == (1, 1)
    np.testing.assert_allclose(found.point, (1.0, -0.2, 0.0), atol=0.03)
    assert pick(scene, camera, W, H, 2, 2) is None


def test_tiles_show_each_environment_in_its_own_cell(render):
    bundle = compiled(RED_BOX)
    here, away = initial_rows(bundle)[None], initial_rows(bundle)[None].copy()
    away[:, :, 3] += 50
    renderer = OffscreenRenderer(bundle, W, H)
    render.opened.append(renderer)
    camera = Camera((0, 0, 0), 2, 90, 0)
    picture = renderer.render_tiles([camera] * 4, np.concatenate([here, away, away, here]))
    for cell, red in enumerate((True, False, False, True)):
        x, y, w, h = tile(cell, 4, W, H)
        assert (color_at(picture, x + w // 2, H - (y + h // 2))[0] > 120) == red


def test_two_renderers_of_one_process_do_not_disturb_each_other(render):
    camera = Camera((0, 0, 0), 2, 90, 0)
    red, blue = compiled(RED_BOX), compiled(RED_BOX.replace("1 0 0", "0 0 1"))
    first, second = OffscreenRenderer(red, W, H), OffscreenRenderer(blue, W, H)
    render.opened += [first, second]
    for _ in range(2):
        assert color_at(first.render(camera, initial_rows(red)[None], ORIGIN), W // 2, H // 2)[0] > 100
        assert color_at(second.render(camera, initial_rows(blue)[None], ORIGIN), W // 2, H // 2)[2] > 100


def test_an_egl_device_that_does_not_exist_lists_those_that_do(monkeypatch):
    monkeypatch.setenv("EGL_DEVICE_ID", "99")
    with pytest.raises(RenderError, match="EGL_DEVICE_ID='99'") as caught:
        egl.EglContext()
    assert "EGL devices: 0 " in str(caught.value)
    monkeypatch.setenv("EGL_DEVICE_ID", "first")
    with pytest.raises(RenderError, match="'first'"):
        egl.EglContext()


def test_opening_and_closing_leaves_no_descriptors(render):
    import os

    bundle = compiled(RED_BOX)
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    counts = []
    for _ in range(6):
        with OffscreenRenderer(bundle, 64, 48) as renderer:
            renderer.render(Camera(), initial_rows(bundle)[None], ORIGIN)
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[-1] <= counts[1] + 1


def test_a_closed_renderer_says_so():
    renderer = OffscreenRenderer(compiled(RED_BOX), 64, 48)
    renderer.close()
    renderer.close()
    with pytest.raises(RenderError, match="closed"):
        renderer.render(Camera(), np.zeros((1, 1, 12), np.float32), ORIGIN)


def test_the_wrong_number_of_poses_is_refused(render):
    bundle = compiled(RED_BOX)
    with pytest.raises(ValueError, match="2 environments"):
        render(bundle, Camera(), np.zeros((1, 3)), np.zeros((2, bundle.ngeom, 12), np.float32))


@pytest.mark.parametrize("how", [{"samples": 4}, {"smooth": True, "samples": 1}])
def test_edges_are_smooth_in_pictures(how):
    bundle = compiled('<geom type="box" size=".5 .5 .5" euler="0 20 0" rgba="1 0 0 1"/>')
    camera, steepness = Camera((0, 0, 0), 4, 90, 0), []
    for settings in ({"samples": 1}, how):
        with OffscreenRenderer(bundle, W, H, quality=Quality(**settings)) as renderer:
            red = renderer.render(camera, initial_rows(bundle)[None], ORIGIN)[..., 0].astype(int)
        assert red.max() > 100
        steepness.append(np.sort(np.abs(np.diff(red, axis=1)).ravel())[-200:].mean())
    assert steepness[1] < 0.85 * steepness[0]


def test_renderers_without_shadows_follow_one_another(render):
    bundle = compiled(RED_BOX)
    for _ in range(3):
        with OffscreenRenderer(bundle, W, H, quality=Quality(shadows=False, samples=1)) as renderer:
            picture = renderer.render(Camera((0, 0, 0), 2, 90, -20), initial_rows(bundle)[None], ORIGIN)
        assert color_at(picture, W // 2, H // 2)[0] > 100
