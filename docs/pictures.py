"""Make the pictures of the tutorial and of the front page: ``python -m docs.pictures``.

A browser photographs the page of an audit, so PyQt6-WebEngine is needed. No other part of the project uses it.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

import fairness_audits as fa
from docs.gallery import DOCS, save_smaller

IMAGES = DOCS / "images"
PAGE = (900, 820)
"""Size of the part of the page that is shown, in pixels."""
REPRODUCED = IMAGES / "permutation_tests" / "figure_2.png"
GAP = 40


def photographed(page: Path, picture: Path) -> None:
    """Save what a browser shows of the page."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PyQt6.QtCore import QTimer, QUrl
    from PyQt6.QtWebEngineCore import QWebEngineSettings
    from PyQt6.QtWebEngineWidgets import QWebEngineView
    from PyQt6.QtWidgets import QApplication

    application = QApplication(["pictures", "--no-sandbox", "--disable-gpu"])
    view = QWebEngineView()
    view.resize(*PAGE)
    view.page().settings().setAttribute(QWebEngineSettings.WebAttribute.ShowScrollBars, False)
    view.show()

    def save() -> None:
        view.grab().save(str(picture))
        application.quit()

    # The first frame is painted shortly after the page is loaded.
    view.loadFinished.connect(lambda _: QTimer.singleShot(1500, save))
    view.load(QUrl.fromLocalFile(str(page)))
    application.exec()


def beside(left: Path, right: Path, place: Path) -> None:
    """Save two pictures side by side, each in the middle of its half."""
    with Image.open(left) as first, Image.open(right) as second:
        width = PAGE[0]
        other = second.convert("RGB").resize((width, width * second.height // second.width), Image.Resampling.LANCZOS)
        both = Image.new("RGB", (2 * width + GAP, max(first.height, other.height)), "white")
        both.paste(first.convert("RGB"), (0, 0))
        both.paste(other, (width + GAP, (both.height - other.height) // 2))
        both.save(place)


def main() -> None:
    """Audit the example and write its figure, its page, and the page beside a reproduced figure."""
    people = fa.example_data()
    result = fa.permutation_test(people["repaid"], prediction=people["approved"], group=people["sex"], metric="tpr")
    (IMAGES / "tutorial").mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        made = Path(folder)
        result.save(made / "audit")
        photographed(made / "audit" / "permutation.html", made / "page.png")
        beside(made / "page.png", REPRODUCED, made / "front.png")
        for source, place in (
            (made / "audit" / "differences.png", IMAGES / "tutorial" / "figure.png"),
            (made / "page.png", IMAGES / "tutorial" / "page.png"),
            (made / "front.png", IMAGES / "front.png"),
        ):
            save_smaller(source, place)


if __name__ == "__main__":
    main()
