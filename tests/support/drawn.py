"""What stands in a drawing."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree


def texts_of(svg: Path) -> list[str]:
    """What matplotlib says it has written: a comment before the outlines of each text."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.parse(svg, parser).getroot()
    return [each.text.strip() for each in root.iter(ElementTree.Comment)]
