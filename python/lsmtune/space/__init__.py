"""The space of a search: parameters, their conditions, constraints, and their form in Optuna.

Pure: no clock, no file, no state. Errors are `InputError` with the field's dotted name.
"""

from lsmtune.space.condition import Condition, make_condition
from lsmtune.space.constraint import Constraint, ConstraintKind, make_constraint
from lsmtune.space.expression import Expression, make_expression
from lsmtune.space.parameter import Parameter, make_categorical, make_number
from lsmtune.space.prior import PRIOR_DISTRIBUTIONS, Prior, make_prior
from lsmtune.space.range import Range
from lsmtune.space.space import Space, make_space
from lsmtune.space.special import Special
from lsmtune.space.values import OPTION_NAME_ALLOWED, is_option_name

__all__ = [
    "OPTION_NAME_ALLOWED",
    "PRIOR_DISTRIBUTIONS",
    "Condition",
    "Constraint",
    "ConstraintKind",
    "Expression",
    "Parameter",
    "Prior",
    "Range",
    "Space",
    "Special",
    "is_option_name",
    "make_categorical",
    "make_condition",
    "make_constraint",
    "make_expression",
    "make_number",
    "make_prior",
    "make_space",
]
