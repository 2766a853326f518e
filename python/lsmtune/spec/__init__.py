"""Study files: read, checked, and turned into a Spec."""

from lsmtune.spec.load import load_spec, parse_spec, place_of, spec_json_schema
from lsmtune.spec.models import SAMPLER_NAMES
from lsmtune.spec.spec import Budget, ProofSpec, SamplerSpec, Spec
from lsmtune.spec.template import TEMPLATE_ENGINES, study_text

__all__ = [
    "SAMPLER_NAMES",
    "TEMPLATE_ENGINES",
    "Budget",
    "ProofSpec",
    "SamplerSpec",
    "Spec",
    "load_spec",
    "parse_spec",
    "place_of",
    "spec_json_schema",
    "study_text",
]
