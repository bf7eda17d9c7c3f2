"""The pictures of the README and the docs, from real runs: python docs/make_pictures.py"""

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import fillrank as fr
from fillrank.cli.demo import generate_weather

IMAGES = Path(__file__).parent / "images"
INK, BAND, DOT = "#1f4e79", "#bcd2e8", "#c0533e"


def _table(ax, matrix, title):
    ax.imshow(matrix[:60], aspect="auto", cmap="RdYlBu_r", vmin=2, vmax=28, interpolation="nearest")
    ax.set(title=title, xlabel="day", ylabel="station", xticks=[0, 60, 119], yticks=[0, 59])
    ax.set_xticklabels(["1", "61", "120"])
    ax.set_yticklabels(["1", "60"])


def overview():
    """The demo's table with its holes, filled, and one station with its intervals."""
    weather = generate_weather()
    model = fr.GASR(random_state=0, progress=False)
    filled = model.fit_transform(weather.read)
    station = int(np.argsort(np.isfinite(weather.read).sum(axis=1))[75])
    days = np.arange(20, 56)
    low, high = model.predict_interval(station, days, level=0.9, kind="signal")

    figure = Figure(figsize=(12, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1, 1.5])
    _table(left, weather.read, "60% of the readings are lost")
    _table(middle, filled, f"filled in; {model.rank_} factors found")
    right.vlines(days + 1, low, high, color=BAND, lw=5, label="90% interval")
    right.plot(days + 1, weather.truth[station, days], "_", color=INK, ms=6, mew=1.6, label="truth")
    right.plot(days + 1, weather.read[station, days], "o", color=DOT, ms=3.5, label="readings")
    right.set(title="one station: the truth was not shown to it", xlabel="day", ylabel="degrees")
    right.legend(frameon=False, ncols=3, fontsize=8, loc="lower center")
    low_end, high_end = right.get_ylim()
    right.set_ylim(low_end - 0.12 * (high_end - low_end), high_end)
    for ax in (left, middle, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGES / "overview.png", dpi=110)


def spectrum():
    """The spectrum of the demo's table."""
    model = fr.GASR(random_state=0, progress=False).fit(generate_weather().read)
    fr.plot.spectrum(model).figure.savefig(IMAGES / "spectrum.png", dpi=110)


def features():
    """The effects of features, and what they explain, in the example of docs/features.md."""
    rng = np.random.default_rng(1)
    age, town = rng.integers(16, 80, 240), rng.choice(["Aber", "Bree", "Caer"], 240)
    own = np.column_stack([(age - 48) / 18, rng.normal(size=(240, 2))])
    suits = own @ rng.normal(0, 0.5, (3, 60))
    liking = 3.3 + rng.normal(0, 0.3, 60) + suits + rng.normal(0, 0.6, suits.shape)
    watched = rng.random(suits.shape) < 1 / (1 + np.exp(2.2 - suits))
    ratings = np.where(watched, np.clip(np.rint(liking), 1, 5), np.nan)[:220]
    train, _ = fr.Observations.of(ratings).split(test_fraction=0.2, random_state=0)
    people = pd.DataFrame({"age": age, "town": town})[:220]
    model = fr.GASR(random_state=0, progress=False).fit(train, row_features=people)
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    fr.plot.feature_effects(model, ax=left)
    fr.plot.variance_shares(model, ax=right)
    figure.savefig(IMAGES / "features.png", dpi=110)


def report():
    """The upper part of the report on the demo's table, as a browser shows it; needs Chromium."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("report.png needs chromium or google-chrome: install one of them.")
    weather = generate_weather()
    stations = [f"station {i:03d}" for i in range(1, len(weather.read) + 1)]
    days = [f"day {j}" for j in range(1, weather.read.shape[1] + 1)]
    data = fr.Observations.of(pd.DataFrame(weather.read, stations, days))
    train, test = data.split(0.1, random_state=0)
    model = fr.GASR(random_state=0, progress=False).fit(train)
    with TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        fr.write_report(model, page, test=test, title="Temperatures of 300 stations")
        options = (
            "--headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run --disable-sync"
        )
        quiet = "--disable-quic --disable-background-networking --disable-component-update"
        subprocess.run(
            [browser, *options.split(), *quiet.split(), f"--user-data-dir={folder}/profile",
             "--window-size=1160,1560", f"--screenshot={IMAGES / 'report.png'}", page.as_uri()],
            check=True,
        )  # fmt: skip


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    overview()
    spectrum()
    features()
    report()
