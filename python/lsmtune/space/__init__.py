"""The space of a search: parameters, their conditions, and their form in Optuna.

Pure: no clock, no file, no state. Errors are `InputError` with the field's dotted name.
"""

from lsmtune.space.condition import Condition, make_condition
from lsmtune.space.parameter import Parameter, make_categorical, make_number
from lsmtune.space.range import Range
from lsmtune.space.space import Space, make_space
from lsmtune.space.special import Special
from lsmtune.space.values import OPTION_NAME_ALLOWED, is_option_name

__all__ = [
    "OPTION_NAME_ALLOWED",
    "Condition",
    "Parameter",
    "Range",
    "Space",
    "Special",
    "is_option_name",
    "make_categorical",
    "make_condition",
    "make_number",
    "make_space",
]
