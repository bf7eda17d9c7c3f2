"""Spreadsheets written by hand: the smallest that are read, and forged ones."""

import io
import zipfile

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_ODS = "urn:oasis:names:tc:opendocument:xmlns"


def xlsx_members(rows, texts=()):
    """The members of an .xlsx file, from the XML of its rows and of its shared texts."""
    links = {
        "r1": ("worksheet", "worksheets/sheet1.xml"),
        "r2": ("sharedStrings", "sharedStrings.xml"),
    }
    named = "".join(
        f'<Relationship Id="{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for number, (kind, target) in links.items()
    )
    shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
    return {
        "[Content_Types].xml": f'<Types xmlns="{_TYPES}"/>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}"><Relationship Id="r1" '
        f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>'
        '<sheet name="s" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}">{named}</Relationships>',
        "xl/sharedStrings.xml": f'<sst xmlns="{_MAIN}">{shared}</sst>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData>'
        "</worksheet>",
    }


def ods_members(rows):
    """The members of an .ods file, from the XML of its rows."""
    return {
        "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
        "META-INF/manifest.xml": f'<m:manifest xmlns:m="{_ODS}:manifest:1.0"/>',
        "content.xml": f'<office:document-content xmlns:office="{_ODS}:office:1.0" '
        f'xmlns:table="{_ODS}:table:1.0" xmlns:text="{_ODS}:text:1.0"><office:body>'
        f'<office:spreadsheet><table:table table:name="s">{rows}</table:table></office:spreadsheet>'
        "</office:body></office:document-content>",
    }


def archive(members):
    """The bytes of a zip file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return file.getvalue()


def ods_cell(value, attributes=""):
    return (
        f'<table:table-cell {attributes} office:value-type="float" office:value="{value}">'
        f"<text:p>{value}</text:p></table:table-cell>"
    )


def ods_row(*cells, attributes=""):
    return f"<table:table-row {attributes}>{''.join(cells)}</table:table-row>"
