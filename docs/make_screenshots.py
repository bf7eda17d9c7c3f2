"""The explorer's pictures of the docs, from a real browser: python docs/make_screenshots.py

They need Chromium and its driver, and selenium (the extra "browser").
"""

import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import fillrank as fr
from fillrank.explore.server import Explorer
from fillrank.explore.views import ModelView

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
FOODS = (
    "almonds apples aubergine beetroot black-tea blue-cheese bread brussels-sprouts butter carrots "
    "chocolate coffee coriander cucumber dates eggs fennel figs garlic ginger grapefruit green-tea "
    "halloumi honey hummus kale kimchi lemons lentils liquorice mango marmalade mushrooms mustard oats "
    "olives onions oysters pickles pineapple porridge prawns radishes rhubarb rice salmon sardines "
    "spinach strawberries tofu tomatoes walnuts yoghurt"
)
FIRST = "Ada Ben Cleo Dan Eva Finn Gita Hugo Ines Jon Kim Lea Max Nora Omar Pia Quinn Rosa Sam Tess"
LAST = "Abel Brandt Costa Diaz Evans Fox Gupta Haas Ito Jansen Klein Lund Mora Novak Okoye"


def survey():
    """What 300 made-up people think of 53 foods, from 1 to 10, of which they have tried a third."""
    rng = np.random.default_rng(8)
    people = [f"{first} {last}" for last in LAST.split() for first in FIRST.split()]
    foods = [name.replace("-", " ") for name in FOODS.split()]
    taste = rng.normal(size=(len(people), 3)) @ rng.normal(size=(3, len(foods)))
    liking = 6 + rng.normal(0, 0.8, len(foods)) + taste + rng.normal(0, 0.6, taste.shape)
    i, j = np.nonzero(rng.random(liking.shape) < 0.35)
    values = np.clip(np.round(2 * liking[i, j]) / 2, 1, 10)
    names = np.array(people, dtype=object)[i], np.array(foods, dtype=object)[j]
    return fr.Observations.from_triplets(*names, values)


def explorer():
    """The explorer: a row on a laptop, a column in the dark, a file on a phone."""
    sys.path.insert(0, str(ROOT / "tests"))
    from helpers.chromium import as_screen, chromium

    model = fr.GASR(random_state=0, progress=False).fit(survey())
    at = int(model.observations_.row_positions("Nora Evans")[0])
    with Explorer(ModelView(model, "tastes")) as server, chromium() as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def shot(name, address, width, height, dark=False, then=lambda: None):
            as_screen(browser, width, height, dark)
            browser.get("about:blank")
            browser.get(f"{server.url}{address}")
            time.sleep(1.5)
            then()
            browser.save_screenshot(str(IMAGES / f"{name}.png"))

        shot("explorer", f"#/rows/{at}", 1200, 860)
        shot("explorer-column", "#/columns/20", 1200, 860, dark=True)
        shot("explorer-phone", f"#/rows/{at}", 390, 844)

        def fill():
            with tempfile.TemporaryDirectory() as folder:
                table = Path(folder) / "guests.csv"
                table.write_text("guest,coffee,figs,kale,oysters,tofu\nYara,8,,3,,2\nZeno,,9,,7,\n")
                browser.find_element("id", "file").send_keys(str(table))
                time.sleep(1.5)

        shot("explorer-fill", "#/fill", 1200, 860, then=fill)
        server.shutdown()


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    explorer()
