"""The file of a visit: a zip of `contact.json` and of a page that shows it."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path

from toolchain.contact.document import Contact
from toolchain.errors import InputError
from toolchain.files import write_file
from toolchain.files.bounded import read_bounded
from toolchain.files.formats import CONTACT
from toolchain.files.records import LARGEST_JSON_BYTES, encode, parse_json, record
from toolchain.page.render import still_page

DOCUMENT, PAGE = "contact.json", "contact.html"
_LARGEST_BYTES = 1 << 26
_TEMPLATE = "contact"


def contact_page(contact: Contact) -> str:
    """The page: HTML that loads nothing and has no script."""
    title = f"First contact: {contact.board}"
    return still_page(_TEMPLATE, {"title": title, **encode(contact)})


def write_contact(contact: Contact, file: Path) -> None:
    """Write the file, completely or not at all. Raises InputError where it cannot be written."""
    text = json.dumps(encode(contact), indent=1) + "\n"
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in ((DOCUMENT, text), (PAGE, contact_page(contact))):
            entry = zipfile.ZipInfo(name)  # dated 1980: the file follows from its content
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    write_file(file, held.getvalue())


def read_contact(file: Path) -> Contact:
    """The content of a contact file.

    Raises InputError where it is no zip, lacks the document or declares one that is too large, and
    naming the field that is wrong.
    """
    data = read_bounded(file, _LARGEST_BYTES)
    where = f"{file}: {DOCUMENT}"
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = archive.getinfo(DOCUMENT).file_size
            if size > LARGEST_JSON_BYTES:
                raise InputError(
                    f"{where} declares {size:,} bytes, {LARGEST_JSON_BYTES:,} are read"
                )
            with archive.open(DOCUMENT) as entry:
                text = entry.read(LARGEST_JSON_BYTES + 1)
    except KeyError as error:
        raise InputError(f"{file} holds no {DOCUMENT}: `thimble contact` writes one") from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise InputError(f"{file} is no contact file: {error}") from error
    found = parse_json(text, where)
    if not isinstance(found, dict) or found.get("format") != CONTACT.name:
        raise InputError(f"{where} is none of `thimble contact`")
    CONTACT.check_fields(found, where)
    return record(Contact, found, where)


def is_contact(file: Path) -> bool:
    """Whether a file begins as a zip does."""
    try:
        with file.open("rb") as source:
            return source.read(4) == b"PK\x03\x04"
    except OSError:
        return False
