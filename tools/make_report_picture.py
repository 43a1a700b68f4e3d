"""Makes docs/report.png, the picture of the report in the README: runs `lmemo demo` and looks at its report with Chromium.

    .venv/bin/python tools/make_report_picture.py
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
WIDTH, HEIGHT = 1000, 900


def main() -> None:
    tour = Path(tempfile.gettempdir()) / "lmemo-demo"
    lmemo = Path(sys.executable).parent / "lmemo"
    subprocess.run([lmemo, "demo", "--output", tour, "--quiet"], check=True)
    picture = ROOT / "docs" / "report.png"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto((tour / "report.html").as_uri())
        page.screenshot(path=picture, full_page=True)
        browser.close()
    # Few colours are in it: a palette makes it a third as large.
    Image.open(picture).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(picture, optimize=True)
    shutil.rmtree(tour)


main()
