"""A configuration as commands take it, and as their JSON has it."""

from __future__ import annotations

from lsmtune.model.config import Config, option_text


def config_text(config: Config) -> str:
    """The options as every command takes them: `name=value,name=value`."""
    pairs = (f"{name}={option_text(value)}" for name, value in config.options.items())
    return ",".join(pairs) or "default"


def config_document(config: Config) -> dict[str, object]:
    """A configuration as the commands' JSON has it."""
    return {"label": config.label, "options": dict(config.options)}
