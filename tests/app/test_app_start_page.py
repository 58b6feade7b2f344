"""The start page: pictures of the bundled scenes, and what its cards do."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage

from app.model.intents import Intents
from app.model.state import AppState
from app.ui.start_page import StartPage
from app.ui.theme import apply_theme
from resources import list_scenes, scene_path


@pytest.fixture
def page(qtbot, qapp, state: AppState, intents: Intents) -> StartPage:
    apply_theme(qapp, "dark")
    made = StartPage(state, intents)
    qtbot.addWidget(made)
    made.resize(700, 560)
    made.show()
    qtbot.waitExposed(made)
    return made


@pytest.mark.parametrize("name", list_scenes())
def test_every_bundled_scene_has_a_picture_of_something(name: str) -> None:
    image = QImage(str(scene_path(name).with_suffix(".jpg")))
    assert (image.width(), image.height()) == (480, 270)
    colors = {image.pixelColor(x, y).name() for x in range(0, 480, 6) for y in range(0, 270, 6)}
    assert len(colors) > 100, "run packaging/scene_pictures.py"


def coarse(image: QImage) -> np.ndarray:
    """Lightness on a grid of 16 x 9."""
    small = image.scaled(16, 9, Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation)
    return np.array([[small.pixelColor(x, y).lightness() for x in range(16)] for y in range(9)], float)


def test_cards_show_their_picture_above_their_words(page: StartPage) -> None:
    for name, card in page.cards.items():
        drawn = card.grab().toImage()
        picture = QImage(str(scene_path(name).with_suffix(".jpg")))
        height = round(drawn.width() * picture.height() / picture.width())
        there, wanted = coarse(drawn.copy(0, 0, drawn.width(), height)), coarse(picture)
        assert np.abs(there - wanted).mean() < 12, name
        for words in (card._name, card._note):
            assert words.y() >= height and words.geometry().bottom() < card.height(), name


@pytest.mark.parametrize("width", [540, 700, 1500])
def test_cards_fit_whole_into_the_page_at_any_width(page: StartPage, qtbot, width: int) -> None:
    page.resize(width, 560)
    qtbot.waitUntil(lambda: page.widget().width() == page.viewport().width())
    assert not page.horizontalScrollBar().isVisible()
    for card in page.cards.values():
        corner = card.mapTo(page.viewport(), card.rect().bottomRight())
        assert 0 <= corner.x() < page.viewport().width()


def test_a_card_opens_its_scene(page: StartPage, intents: Intents, qtbot) -> None:
    opened: list[str] = []
    intents.open_path.connect(opened.append)
    qtbot.mouseClick(page.cards["humanoid"], Qt.MouseButton.LeftButton)
    assert opened == [str(scene_path("humanoid"))]


def test_recent_files_are_offered_without_the_bundled_ones(page: StartPage, state: AppState, intents: Intents) -> None:
    opened: list[str] = []
    intents.open_path.connect(opened.append)
    state.settings.remember(str(scene_path("humanoid")))
    state.settings.remember("/robots/mine.urdf")
    state.recent_changed.emit()
    buttons = [page._recent.itemAt(i).widget() for i in range(1, page._recent.count())]
    assert len(buttons) == 1 and buttons[0].text().startswith("mine.urdf")
    buttons[0].click()
    assert opened == ["/robots/mine.urdf"]
