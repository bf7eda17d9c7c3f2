"""The pictures of the README and the docs, from real runs.

python docs/make_pictures.py            all of them
python docs/make_pictures.py gallery    those of docs/gallery.md, or another one by its name
"""

import argparse
import doctest
import shutil
import subprocess
from contextlib import redirect_stdout
from io import StringIO
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
    """The demo's table with its missing values, completed, and one station with its intervals."""
    weather = generate_weather()
    model = fr.GASR(random_state=0, progress=False)
    filled = model.fit_transform(weather.readings)
    station = int(np.argsort(np.isfinite(weather.readings).sum(axis=1))[75])
    days = np.arange(20, 56)
    low, high = model.predict_interval(station, days, level=0.9, kind="signal")

    figure = Figure(figsize=(12, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1, 1.5])
    _table(left, weather.readings, "60% of the readings are lost")
    _table(middle, filled, f"filled in; {model.rank_} factors found")
    right.vlines(days + 1, low, high, color=BAND, lw=5, label="90% interval")
    right.plot(days + 1, weather.truth[station, days], "_", color=INK, ms=6, mew=1.6, label="truth")
    right.plot(days + 1, weather.readings[station, days], "o", color=DOT, ms=3.5, label="readings")
    right.set(
        title="one station; the fit did not have its true values", xlabel="day", ylabel="degrees"
    )
    right.legend(frameon=False, ncols=3, fontsize=8, loc="lower center")
    low_end, high_end = right.get_ylim()
    right.set_ylim(low_end - 0.12 * (high_end - low_end), high_end)
    for ax in (left, middle, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGES / "overview.png", dpi=110)


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
    stations = [f"station {i:03d}" for i in range(1, len(weather.readings) + 1)]
    days = [f"day {j}" for j in range(1, weather.readings.shape[1] + 1)]
    data = fr.Observations.of(pd.DataFrame(weather.readings, stations, days))
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


def _survey(figure, names):
    """Coefficients of the three regressions."""
    ax = figure.subplots()
    pooled = names["found"]

    def of_fit(fit):
        return fit.conf_int().set_axis(["lower", "upper"], axis=1).assign(estimate=fit.params)

    tables = {
        "complete table": (of_fit(names["everybody"]), INK),
        "pooled": (pooled, "#3a8a5f"),
        "answered all": (of_fit(names["some"]), DOT),
    }
    # Age in decades, so that its coefficient is of the size of the others.
    unit = np.where(pooled.index == "age", 10.0, 1.0)
    places = np.arange(len(pooled))
    for k, (name, (table, colour)) in enumerate(tables.items()):
        shown = table.loc[pooled.index, ["estimate", "lower", "upper"]].mul(unit, axis=0)
        y = places + 0.2 * (k - 1)
        ax.hlines(y, shown["lower"], shown["upper"], color=colour, lw=2.5, alpha=0.6)
        ax.plot(shown["estimate"], y, "o", color=colour, ms=5, label=name)
    ax.axvline(0, color="0.6", lw=0.8)
    ax.set_yticks(places, ["age, 10 years", "south, against north", "west, against north"])
    ax.set(xlabel="difference of the score, with 95% intervals", title="What goes with the score")
    ax.invert_yaxis()
    ax.legend(frameon=False, fontsize=8)


def _sensors(figure, names):
    """Three days of a roof around an outage, and the energy of days with outages."""
    left, right = figure.subplots(1, 2, width_ratios=[1.7, 1])
    span = slice(24 * (names["day"] - 1), 24 * (names["day"] + 2))
    hours, roof = names["hours"][span], names["roof"]
    labels = [f"roof {roof + 1} | {hour:%Y-%m-%d}" for hour in hours]
    low, high = names["model"].predict_interval(labels, [f"{hour:%H:%M}" for hour in hours])
    lost = names["lost"][span, roof]
    measured = names["measured"].iloc[span, roof].to_numpy()
    x = np.arange(len(hours))
    left.vlines(x[lost], low[lost], high[lost], color=BAND, lw=4, label="90% interval")
    left.plot(x[lost], measured[lost], "_", color=INK, ms=6, mew=1.6, label="lost readings")
    left.plot(x[~lost], measured[~lost], "o", color=DOT, ms=3, label="readings")
    left.set(title=f"roof {roof + 1}: three days", xlabel="hour", ylabel="kW")
    left.set_xticks(range(0, 73, 12), [0, 12, 0, 12, 0, 12, 24])
    left.legend(frameon=False, fontsize=8, ncols=3, loc="upper center")
    left.set_ylim(-0.5, 1.3 * max(measured.max(), high[lost].max()))
    gaps, truth, energy = names["gaps"], names["truth"], names["energy"]
    right.axline((20, 20), slope=1, color="0.7", lw=0.8)
    right.vlines(truth[gaps], names["low"][gaps], names["high"][gaps], color=BAND, lw=4)
    right.plot(truth[gaps], energy.mean(axis=0)[gaps], "o", color=INK, ms=3.5, label="drawn tables")
    right.plot(truth[gaps], names["lines"][gaps], "x", color=DOT, ms=4, label="interpolation")
    right.set(title="days with 6 or more missing hours", xlabel="true kWh", ylabel="kWh")
    right.legend(frameon=False, fontsize=8)


def _screening(figure, names):
    """Expected and measured potency of the new compounds."""
    ax = figure.subplots()
    expected, result = names["expected"], names["result"]
    order = np.argsort(expected.to_numpy())
    x = np.arange(len(order))
    chosen = expected.index[order].isin(names["first_ten"])
    ax.vlines(x, names["low"][order], names["high"][order], color=BAND, lw=4, label="90% interval")
    ax.plot(x, expected.iloc[order], "_", color=INK, ms=6, mew=1.6, label="expected")
    ax.plot(x[~chosen], result.iloc[order][~chosen], "o", color="0.6", ms=4, label="test result")
    ax.plot(x[chosen], result.iloc[order][chosen], "o", color=DOT, ms=5, label="the ten chosen")
    ax.set(
        title="50 compounds without any test",
        xlabel="compounds, by expected potency",
        ylabel="potency",
    )
    ax.set_xticks([])
    ax.legend(frameon=False, fontsize=8, ncols=4, loc="upper left")


def _ratings(figure, names):
    """The error for new readers."""
    ax = figure.subplots()
    errors = names["errors"]
    for name, colour in (("without", DOT), ("with features", INK)):
        ax.plot(range(len(errors)), errors[name], "o-", color=colour, label=name)
    ax.set_xticks(range(len(errors)), errors.index)
    ax.set(title="50 new readers", xlabel="ratings of a new reader", ylabel="RMSE in stars")
    ax.legend(frameon=False)


def _chemistry(figure, names):
    """Arsenic and uranium of a drawn table, and of the truth."""
    drawn, true, exact = np.exp(names["tables"][0]), names["true"], names["exact"]
    known = exact[["arsenic", "uranium"]].notna().all(axis=1).to_numpy()
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for ax, table, title in zip(panels, (drawn, true), ("one drawn table", "truth"), strict=True):
        for chosen, colour, label in (
            (known, DOT, "both exact"),
            (~known, INK, "a limit or missing"),
        ):
            part = table[chosen]
            ax.plot(
                part["arsenic"], part["uranium"], "o", color=colour, ms=3, alpha=0.7, label=label
            )
        ax.axvline(names["limits"]["arsenic"], color="0.6", lw=0.8, ls="--")
        ax.axhline(names["limits"]["uranium"], color="0.6", lw=0.8, ls="--")
        ax.set(title=title, xscale="log", yscale="log", xlabel="arsenic")
    panels[0].set_ylabel("uranium")
    panels[0].legend(frameon=False, fontsize=8)


GALLERY = (_survey, _sensors, _screening, _ratings, _chemistry)


def gallery():
    """The pictures of docs/gallery.md, each from the names at the end of its section."""
    for section, draw in zip(_sections("gallery.md"), GALLERY, strict=True):
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        draw(figure, section)
        for ax in figure.axes:
            ax.spines[["top", "right"]].set_visible(False)
        figure.savefig(IMAGES / f"gallery-{draw.__name__.strip('_')}.png", dpi=110)


def _sections(page):
    """The names at the end of each section of a page that has examples, after a first part for all."""
    text = (Path(__file__).parent / page).read_text("utf-8")
    common, *sections = text.split("\n## ")
    names = {}
    with redirect_stdout(StringIO()):
        for part in (common, *sections):
            for example in doctest.DocTestParser().get_examples(part):
                exec(compile(example.source, page, "single"), names)
            if part is not common:
                yield dict(names)


PICTURES = {make.__name__: make for make in (overview, features, gallery, report)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", nargs="?", choices=PICTURES)
    which = parser.parse_args().which
    IMAGES.mkdir(exist_ok=True)
    for name in [which] if which else PICTURES:
        PICTURES[name]()
