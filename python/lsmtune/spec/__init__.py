"""Study files: read, checked, and turned into a Spec."""

from lsmtune.spec.load import (
    load_spec,
    parse_spec,
    parse_stored_spec,
    place_of,
    spec_json_schema,
)
from lsmtune.spec.spec import (
    Budget,
    DatabaseSpec,
    DataRungs,
    NoiseSpec,
    ProofSpec,
    PrunerSpec,
    SamplerSpec,
    Spec,
    TimeRungs,
)
from lsmtune.spec.template import TEMPLATE_ENGINES, study_text

__all__ = [
    "TEMPLATE_ENGINES",
    "Budget",
    "DataRungs",
    "DatabaseSpec",
    "NoiseSpec",
    "ProofSpec",
    "PrunerSpec",
    "SamplerSpec",
    "Spec",
    "TimeRungs",
    "load_spec",
    "parse_spec",
    "parse_stored_spec",
    "place_of",
    "spec_json_schema",
    "study_text",
]
