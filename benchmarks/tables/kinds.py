"""Tables with several kinds of columns: numbers, ordered answers, yes or no, categories.

    python benchmarks/tables/kinds.py --data FOLDER
    python benchmarks/tables/kinds.py --data FOLDER --tables boys,bfi --methods GASR --masks 2

FOLDER has obesity.csv, boys.csv and bfi.csv. Of the observed cells 30% are hidden completely at random,
in 5 masks, and every method fills in the same tables (mixed_methods.py): GASR gets a data frame with
the types of its columns, R's mice gets factors, and imputers of numbers get codes. Results go to a
file with a line of JSON for each column; what is in it already is not run again. At the end all results
are printed in Markdown. Without R, mice is left out.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np
from masks import make_masks
from mixed_methods import METHODS, R_METHODS, answer
from mixed_page import page
from mixed_results import append_results, finished, read_results
from mixed_tables import TABLES, read_mixed_table
from r_packages import why_missing

SHARE = 0.3


def run_all(given):
    """Run all methods on all tables and masks that have no results yet."""
    given.results.parent.mkdir(parents=True, exist_ok=True)
    for name in given.tables:
        table = read_mixed_table(given.data, name)
        for mask in make_masks(table, SHARE, given.masks):
            for method in given.methods:
                if (name, mask.number, method) not in finished(given.results):
                    run_method(method, table, mask, given)


def run_method(method, table, mask, given):
    """Fill in the table with a mask, and append the scores; a failure of R is printed."""
    if method in R_METHODS and (why := why_missing("mice") or why_missing("nnet")):
        print(f"{method} is left out: {why}", file=sys.stderr)
        return
    visible = table._replace(values=np.where(mask.hidden, np.nan, table.values))
    try:
        answers, seconds = answer(method, visible, given.threads)
    except subprocess.SubprocessError as error:
        print(f"{method} failed: {error}\n{error.stderr}", file=sys.stderr)
    else:
        append_results(given.results, table, mask, method, answers, seconds)
        print(f"{table.name}, mask {mask.number}: {method}, {seconds:.1f} s", file=sys.stderr)


def _list(text):
    return text.split(",")


def main(arguments=None):
    """Run, and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with CSV files")
    parser.add_argument("--tables", type=_list, default=TABLES, help=", ".join(TABLES))
    parser.add_argument("--methods", type=_list, default=tuple(METHODS), help=", ".join(METHODS))
    parser.add_argument("--masks", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("build/tables/kinds.jsonl"))
    given = parser.parse_args(arguments)
    for name, known in (("tables", TABLES), ("methods", METHODS)):
        if unknown := set(getattr(given, name)) - set(known):
            parser.error(f"unknown {name} {sorted(unknown)}; there are {', '.join(known)}")
    run_all(given)
    print(page(read_results(given.results)))


if __name__ == "__main__":
    main()
