"""Tables and results as files, read and written without fillrank."""

import csv
import json

import numpy as np


def write_csv(path, lines, delimiter=","):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(lines)
    return path


def read_csv(path, delimiter=","):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def cell(value):
    return "" if np.isnan(value) else repr(float(value))
