"""Numbers as people write them: decimal commas, thousands separators, currencies, units and limits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import InputError, Setting
from fillrank.table.missing_values import MISSING_WORDS

# Only one way to match digits: with two, the time grows with the square of their number.
_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_EXACT = re.compile(_NUMBER)
_BELOW = re.compile(rf"(?:<=|=<|≤|<)\s*({_NUMBER})")
_ABOVE = re.compile(rf"(?:>=|=>|≥|>)\s*({_NUMBER})|({_NUMBER})\s*\+")
_BETWEEN = re.compile(rf"({_NUMBER})\s*(?:-|–|\.\.|\bto\b)\s*({_NUMBER})")
CURRENCIES = ("€", "$", "£", "¥", "₹", "EUR", "USD", "GBP", "CHF")
_CURRENCY = "|".join(map(re.escape, CURRENCIES))
_BEFORE = re.compile(rf"([-+<>=≤≥]*)\s*({_CURRENCY})\s*(.*)", re.DOTALL)
# A unit starts with a letter, and has no space in it: kg, °C, mg/dl, m², bedrooms.
_AFTER = re.compile(rf"(.*[0-9.+])(\s*)({_CURRENCY}|%|[°µμ]?[^\W\d_][\w°²³^/*·.%-]{{0,14}})")
# Units that may follow a number without a space; 12a, 14C and 1st are no numbers.
_UNITS = """
    kg g mg µg μg ug ng t lb lbs oz km m cm mm µm μm um nm mi ft in yd ha l L ml mL dl dL
    cl µl h hr hrs min mins s sec secs ms day days wk week weeks yr yrs year years °C °F
    °c °f mmHg bpm kcal cal kJ kW MW kWh MWh mV mA Hz kHz MHz GHz Pa hPa kPa bar mbar psi
    ppm ppb ppt mol mmol µmol IU mg/dl mg/dL mg/l mg/L mmol/l mmol/L g/l g/L µg/l µg/L
    ng/ml kg/m3 kg/m² km/h mph m/s m2 m² m3 m³ cm2 cm² cm3 cm³ km2 km² kB KB MB GB TB %
    pct
"""
KNOWN_UNITS = frozenset(_UNITS.split()) | frozenset(CURRENCIES)
_UNSIGNED = re.compile(r"[^-+<>=≤≥(]*[0-9]")
_MARKS = {" ": "[ \u00a0\u202f]", "'": "['’]"}
_LIMIT_SIGNS = "<>≤≥"
_SAMPLED = 2000  # different texts of a column that decide about its style
_US = re.compile(r"[0-9],[0-9]{3}\.[0-9]|[0-9],[0-9]{3},[0-9]{3}")
_EUROPEAN = re.compile(r"[0-9]\.[0-9]{3},[0-9]|[0-9]\.[0-9]{3}\.[0-9]{3}")


class NumberStyle(NamedTuple):
    """The decimal mark of numbers, and the mark between thousands, which is empty without one.

    With a decimal comma a point is a decimal mark too, unless it is between thousands.
    """

    decimal: str = "."
    thousands: str = ""


POINT, COMMA = NumberStyle(), NumberStyle(",")
# In order of preference if several fit.
STYLES = tuple(
    NumberStyle(*marks) for marks in (".", ".,", ",.", ". ", ", ", ".'", ",'", ",")
)  # fmt: skip


class StyleOptions(NamedTuple):
    """What is known about the style of numbers; None is to be found out."""

    decimal: str | None = None
    thousands: str | None = None
    base: NumberStyle = POINT
    """The style of plain numbers: with a decimal comma in files whose delimiter is a semicolon."""
    seen: NumberStyle | None = None
    """A style that other columns of the table have without doubt."""

    def styles(self) -> list[NumberStyle]:
        """The styles that are allowed, the most likely first."""
        if self.decimal is not None and self.thousands is not None:
            return [NumberStyle(self.decimal, self.thousands)]
        first = [self.base] if self.seen is None else [self.seen, self.base]
        return [
            style
            for style in dict.fromkeys((*first, *STYLES))
            if self.decimal in (None, style.decimal) and self.thousands in (None, style.thousands)
        ]


NO_STYLE = StyleOptions()
_THOUSANDS = {"none": "", "": "", "space": " ", " ": " ", ",": ",", ".": ".", "'": "'"}


def given_style(decimal: Any, thousands: Any) -> StyleOptions:
    """Check the marks that a user gives; None is to be found out.

    Examples
    --------
    >>> given_style(",", "space")[:2]
    (',', ' ')
    """
    if decimal not in (None, ".", ","):
        raise InputError(place=Setting("decimal"), allowed="'.' or ','", value=decimal)
    if thousands is not None and thousands not in _THOUSANDS:
        allowed = "one of ',', '.', \"'\", 'space' and 'none'"
        raise InputError(place=Setting("thousands"), allowed=allowed, value=thousands)
    mark = None if thousands is None else _THOUSANDS[thousands]
    if decimal is not None and decimal == mark:
        raise InputError(f"the decimal mark and that of thousands are the same: {decimal!r}.")
    return StyleOptions(decimal, mark)


class Value(NamedTuple):
    """The ends of a value that is written as text, equal for an exact number, and its unit."""

    low: float
    high: float
    unit: str = ""


def parse_number(text: str, style: NumberStyle = POINT) -> float | None:
    """Parse a number; NaN if the text is a missing value, None if it is not a number.

    Examples
    --------
    >>> parse_number("1,5", COMMA), parse_number("n/a"), parse_number("1,5")
    (1.5, nan, None)
    >>> parse_number("1.234,5", NumberStyle(",", "."))
    1234.5
    """
    if not text:
        return np.nan
    if "_" in text:  # Python accepts underscores
        return None
    if style.thousands != ".":
        try:
            return float(text)
        except ValueError:
            pass
    if text.strip().lower() in MISSING_WORDS:
        return np.nan
    plain = None if style == POINT else _plain(text.strip(), style)
    return float(plain) if plain is not None and _EXACT.fullmatch(plain) else None


def parse_value(text: str, style: NumberStyle = POINT) -> Value | None:
    """Parse a number, a limit or an interval, with or without a unit; None for other text.

    Examples
    --------
    >>> parse_value("<0.5"), parse_value("0.2 to 0.5")
    (Value(low=-inf, high=0.5, unit=''), Value(low=0.2, high=0.5, unit=''))
    >>> parse_value("21%"), parse_value("$ 1,250.5", NumberStyle(".", ","))
    (Value(low=21.0, high=21.0, unit='%'), Value(low=1250.5, high=1250.5, unit='$'))
    >>> parse_value("(1250)"), parse_value("tea")
    (Value(low=-1250.0, high=-1250.0, unit=''), None)
    """
    number = parse_number(text, style)
    if number is not None:
        return Value(number, number)
    text = text.strip().replace("−", "-")
    if is_in_brackets(text):
        return _parse_negative(text[1:-1], style)
    if (found := _parse_ends(text, style)) is not None:
        return found
    amount, unit = split_unit(text)
    found = _parse_ends(amount, style) if unit else None
    return None if found is None else found._replace(unit=unit)


def is_in_brackets(text: str) -> bool:
    """Whether a text is in brackets, as negative numbers of accounts are."""
    return text.startswith("(") and text.endswith(")")


def _parse_negative(text: str, style: NumberStyle) -> Value | None:
    """A number without a sign, as the negative one that it is in brackets."""
    if not _UNSIGNED.match(text):
        return None
    found = parse_value(text, style)
    if found is None or found.low != found.high:
        return None
    return Value(-found.low, -found.low, found.unit)


def _parse_ends(text: str, style: NumberStyle) -> Value | None:
    plain = _plain(text, style)
    if plain is None:
        return None
    if _EXACT.fullmatch(plain):
        return Value(float(plain), float(plain))
    if found := _BELOW.fullmatch(plain):
        return Value(-np.inf, float(found[1]))
    if found := _ABOVE.fullmatch(plain):
        return Value(float(found[1] or found[2]), np.inf)
    if found := _BETWEEN.fullmatch(plain):
        low, high = float(found[1]), float(found[2])
        return Value(low, high) if low <= high else None
    return None


def split_unit(text: str) -> tuple[str, str]:
    """A number without its currency or unit, and that; the unit is empty if there is none.

    Examples
    --------
    >>> split_unit("-$5"), split_unit("12.5 kg"), split_unit("12a"), split_unit("2 days")
    (('-5', '$'), ('12.5', 'kg'), ('12a', ''), ('2', 'day'))
    """
    if found := _BEFORE.fullmatch(text):
        return found[1] + found[3], found[2]
    found = _AFTER.fullmatch(text)
    if not found or not (found[2] or found[3] in KNOWN_UNITS):
        return text, ""
    unit = found[3]
    # Codes such as 007 kg have no unit; one day and two days have the same.
    if re.match(r"[-+]?0[0-9]", text):
        return text, ""
    return found[1], unit[:-1] if len(unit) > 2 and unit.endswith("s") else unit


def is_between(value: Value) -> bool:
    """Whether a value has two different ends, such as 18-25, which may also be a label."""
    return bool(np.isfinite(value.low) and np.isfinite(value.high) and value.low < value.high)


def looks_like_number(text: str, base: NumberStyle = POINT) -> bool:
    """Whether a text is a number in any style, or a missing value; intervals may be labels.

    Examples
    --------
    >>> [looks_like_number(text) for text in ("1 234,5", "€ 3", "18-25", "tea")]
    [True, True, False, False]
    """
    may_be = any(map(str.isdigit, text))
    for style in (base, *STYLES) if may_be else (base,):
        value = parse_value(text, style)
        if value is not None:
            return not is_between(value)
    return False


def marks_between(thousands: str) -> str:
    """A pattern of the marks that are written for a mark between thousands."""
    return _MARKS.get(thousands, re.escape(thousands))


@lru_cache
def _grouped(mark: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    between = marks_between(mark)
    groups = rf"(?<![0-9.,])[1-9][0-9]{{0,2}}(?:{between}[0-9]{{3}})+(?![0-9])"
    return re.compile(groups), re.compile(between)


def _plain(text: str, style: NumberStyle) -> str | None:
    """The text with its numbers as Python writes them; None if it is not of this style."""
    decimal, thousands = style
    if thousands:
        groups, mark = _grouped(thousands)
        text = groups.sub(lambda found: mark.sub("", found[0]), text)
        if thousands in ",." and thousands in text.replace("..", ""):
            return None
    return text.replace(",", ".") if decimal == "," else text


# Which style a column has.


def find_style(texts: Iterable[str], options: StyleOptions = NO_STYLE) -> NumberStyle:
    """The style in which most of the texts of a column are numbers.

    A decimal comma that no other sign confirms, as in <0,5, has to be in at least half of the texts: 1,3
    may be a list.

    Examples
    --------
    >>> find_style(["1,234", "950"]), find_style(["1.234,5", "1.234"])
    (NumberStyle(decimal='.', thousands=','), NumberStyle(decimal=',', thousands='.'))
    """
    sample = [text for text, _ in zip(dict.fromkeys(texts), range(_SAMPLED), strict=False)]
    sample = [text for text in sample if any(map(str.isdigit, text))]
    styles = options.styles()
    marks = {mark for mark in ",.' " if any(mark in text for text in sample)}
    if any("\u00a0" in text or "\u202f" in text for text in sample):
        marks.add(" ")
    if any("’" in text for text in sample):
        marks.add("'")
    fallback = styles[0] if options.seen not in styles else options.base
    best, most = fallback, 0
    for style in styles:
        if not (style.thousands in marks or style in (POINT, COMMA)):
            continue
        n_numbers = sum(parse_value(text, style) is not None for text in sample)
        if style == options.seen and n_numbers < len(sample):
            continue
        if style == COMMA and options.base == POINT and options.decimal is None:
            with_comma = [text for text in sample if "," in text]
            is_confirmed = any(text.strip()[0] in _LIMIT_SIGNS for text in with_comma)
            is_usual = is_confirmed or 2 * len(with_comma) >= len(sample)
            if n_numbers < len(sample) or not is_usual:
                continue
        if n_numbers > most:
            best, most = style, n_numbers
    return best


def find_certain_style(texts: Iterable[str]) -> NumberStyle | None:
    """The style of which a text leaves no doubt, such as 1.234,5; None without such a text, or with two.

    Examples
    --------
    >>> find_certain_style(["7", "1.234,5"]), find_certain_style(["1.234"])
    (NumberStyle(decimal=',', thousands='.'), None)
    """
    found = set()
    for text in texts:
        if _US.search(text) and parse_value(text, NumberStyle(".", ",")) is not None:
            found.add(NumberStyle(".", ","))
        elif _EUROPEAN.search(text) and parse_value(text, NumberStyle(",", ".")) is not None:
            found.add(NumberStyle(",", "."))
    return found.pop() if len(found) == 1 else None


# How filled values are written.


class NumberFormat(NamedTuple):
    """How the numbers of a column are written: their style, and what is before and after them.

    With ``brackets``, negative numbers are in brackets, without a sign. All have the same number of
    decimals unless that is None. ``is_positive`` says that none of the observed numbers is 0 or less.
    """

    style: NumberStyle = POINT
    before: str = ""
    after: str = ""
    brackets: bool = False
    decimals: int | None = None
    is_positive: bool = False

    def fixed(self, value: float) -> str | None:
        """A number with the decimals of the column; None if it has to be written with more.

        Rounding would make 0 of a small number, which a column of positive numbers cannot have.

        Examples
        --------
        >>> NumberFormat(decimals=2).fixed(2.5), NumberFormat(decimals=2).fixed(-0.001)
        ('2.50', '0.00')
        >>> NumberFormat(decimals=2, is_positive=True).fixed(0.001)
        """
        if self.decimals is None or math.isnan(value):
            return None
        text = f"{value:z.{self.decimals}f}"
        return None if self.is_positive and value > 0 and float(text) == 0 else text


PLAIN_FORMAT = NumberFormat()


def find_format(texts: Sequence[str], style: NumberStyle) -> NumberFormat:
    """The format of a column of numbers with this style, from its texts.

    Examples
    --------
    >>> find_format(["3", "$ 1,250", "$ 2,000"], NumberStyle(".", ","))[:3]
    (NumberStyle(decimal='.', thousands=','), '$ ', '')
    """
    brackets = any(is_in_brackets(text.strip()) for text in texts)
    style = _as_written(style, texts)
    exact = [text for text in texts if _is_exact(text, style)]
    has_comma = any("," in text for text in exact or texts)
    if style.decimal == "," and not has_comma and not _has_groups(exact, style):
        style = POINT  # a comma would be possible, but there is none, or only in limits
    for text in texts:
        value = parse_value(text, style)
        if value is not None and value.unit and value.low == value.high:
            inner = text.strip().strip("()")
            found = re.fullmatch(r"([^0-9+.-]*)[-+]?([^0-9+.-]*)(.*[0-9]\.?)([^0-9]*)", inner)
            if found:
                return NumberFormat(style, found[1] + found[2], found[4], brackets)
    return NumberFormat(style, brackets=brackets)


def _has_groups(texts: Iterable[str], style: NumberStyle) -> bool:
    """Whether a number has a mark between thousands."""
    return bool(style.thousands) and any(
        _grouped(style.thousands)[0].search(text) for text in texts
    )


def _is_exact(text: str, style: NumberStyle) -> bool:
    value = parse_value(text, style)
    return value is not None and value.low == value.high


def _as_written(style: NumberStyle, texts: Iterable[str]) -> NumberStyle:
    """The style with the mark between thousands that is in the texts: one of several spaces, say."""
    if style.thousands not in _MARKS:
        return style
    groups = re.compile(rf"[0-9]({_MARKS[style.thousands]})[0-9]{{3}}")
    found = next(filter(None, map(groups.search, texts)), None)
    return style if found is None else style._replace(thousands=found[1])


def apply_format(number: str, format: NumberFormat) -> str:
    """A number that is written as Python does, in another format.

    Examples
    --------
    >>> apply_format("-12345.6", NumberFormat(NumberStyle(",", "."), after=" €"))
    '-12.345,6 €'
    >>> apply_format("-12.5", NumberFormat(before="$", brackets=True))
    '($12.5)'
    """
    if format == PLAIN_FORMAT or not number:
        return number
    sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
    whole, point, rest = digits.partition(".")
    if format.style.thousands and whole.isdigit():
        whole = f"{int(whole):,}".replace(",", format.style.thousands)
    mark = format.style.decimal if point else ""
    text = f"{format.before}{whole}{mark}{rest}{format.after}"
    return f"({text})" if sign and format.brackets else f"{sign}{text}"
