"""Conformance suites, which hold lsmtune's own parts and those of packages to the same rules.

A plugin's test is a subclass that names what is tested (`docs/plugins.md`):

    from lsmtune.testing.samplers import SamplerSuite

    class TestAnnealing(SamplerSuite):
        name = "annealing"

They need pytest.
"""

import pytest

# So that what fails is shown with its values, as in a file of tests.
_SUITES = ("samplers", "pruners", "programs", "importers", "exporters", "workloads", "reports")
for _suite in (*_SUITES, "engines"):
    pytest.register_assert_rewrite(f"lsmtune.testing.{_suite}")
