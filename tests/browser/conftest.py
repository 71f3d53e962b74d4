"""A headless Chromium from the system, driven by selenium; without them every test here is skipped with one message.

`make check-site` runs these tests. Screenshots go to the folder that DEFINETTI_SCREENSHOTS names, if it does.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
MISSING = [
    name
    for name, there in (("chromium", BROWSER), ("chromedriver", DRIVER), ("selenium", find_spec("selenium")))
    if not there
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in Path(item.fspath).parents:
            item.add_marker(pytest.mark.browser)
            if MISSING:
                reason = f"no browser: {', '.join(MISSING)} missing (make check-site installs them where it may)"
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for word in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
        "--disable-component-update", "--disable-default-apps", "--no-first-run", "--disable-dev-shm-usage",
        "--hide-scrollbars", f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):  # fmt: skip
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    driver.set_page_load_timeout(30)
    yield driver
    driver.quit()


@pytest.fixture
def screenshot(browser: Any, tmp_path: Path) -> Any:
    """Takes a picture of the whole page."""
    folder = Path(os.environ.get("DEFINETTI_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)

    def take(name: str, width: int, scheme: str = "light") -> Path:
        show_as(browser, width, scheme)
        height = browser.execute_script("return document.documentElement.scrollHeight")
        show_as(browser, width, scheme, min(height, 12_000))
        path = folder / f"{name}.png"
        browser.save_screenshot(str(path))
        return path

    return take


def show_as(browser: Any, width: int, scheme: str = "light", height: int = 900) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
