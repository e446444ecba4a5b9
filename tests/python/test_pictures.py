"""The pictures of the README are light, and those that need no server are what their script makes."""

import importlib.machinery
import importlib.util
import re
import xml.etree.ElementTree

import pytest
from conftest import ROOT

IMAGES = ROOT / "docs/images"
KIB_MAX = 150


@pytest.mark.parametrize("picture", ["diagram", "plot"])
def test_a_picture_is_that_of_the_script(picture, tmp_path):
    loader = importlib.machinery.SourceFileLoader("pictures", str(ROOT / "scripts/readme-pictures"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("pictures", loader))
    loader.exec_module(module)
    module.IMAGES = tmp_path
    getattr(module, picture)()
    made = sorted(tmp_path.glob("*.svg"))
    assert len(made) == 2
    for file in made:
        assert file.read_text() == (IMAGES / file.name).read_text(), f"run: scripts/readme-pictures {picture}"


def test_the_pictures_of_the_readme_are_light_and_whole():
    named = set(re.findall(r"docs/images/([\w-]+\.\w+)", (ROOT / "README.md").read_text()))
    assert len(named) >= 6
    for name in named:
        assert (IMAGES / name).stat().st_size <= KIB_MAX * 1024, name
        if name.endswith(".svg"):
            xml.etree.ElementTree.parse(IMAGES / name)
