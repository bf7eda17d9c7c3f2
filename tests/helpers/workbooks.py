"""Spreadsheets to read, and the cells of those that were written."""

import xlsxwriter
from python_calamine import CalamineWorkbook


def write_workbook(path, rows, sheet="data", at=(0, 0), empty_sheets=()):
    """Write rows of cells to a sheet from a position on, after sheets without cells."""
    with xlsxwriter.Workbook(path) as book:
        for name in empty_sheets:
            book.add_worksheet(name)
        page = book.add_worksheet(sheet)
        date = book.add_format({"num_format": "d mmm yyyy"})
        for i, row in enumerate(rows, start=at[0]):
            for j, cell in enumerate(row, start=at[1]):
                if isinstance(cell, str):
                    page.write_string(i, j, cell)
                elif hasattr(cell, "year"):
                    page.write_datetime(i, j, cell, date)
                elif cell is not None:
                    page.write(i, j, cell)
    return path


def read_workbook(path):
    """The rows of all sheets by name."""
    book = CalamineWorkbook.from_path(path)
    return {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}
