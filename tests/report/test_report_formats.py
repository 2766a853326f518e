from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from sample_study import SampleStudy, fill, finished
from typer.testing import CliRunner

from lsmtune.cli.report import app
from lsmtune.errors import InputError
from lsmtune.model.measurement import Outcome
from lsmtune.report.study import FORMATS, PARQUET, write_as


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> SampleStudy:
    study = finished(tmp_path_factory.mktemp("formats"))
    study.close()
    return study


def report(*arguments: str | Path) -> str:
    # With one command only, typer drops its name.
    result = CliRunner().invoke(app, [*map(str, arguments)])
    if result.exception is not None:
        raise result.exception
    return result.output


def written(sample: SampleStudy, format_name: str, directory: Path) -> str:
    with sample.opened() as folder:
        path, _ = write_as(folder, format_name, directory / "report")
    return path.read_text(encoding="utf-8")


def test_json_has_every_table(sample: SampleStudy, tmp_path: Path) -> None:
    document = json.loads(written(sample, "json", tmp_path))
    assert document["format_version"] == 1
    assert document["status"] == "finished"
    assert document["verdict"]["outcome"] == "better"
    assert document["headline"]["label"] == "Proven gain"
    assert len(document["history"]["trials"]) == 40
    assert len(document["pairs"]) == 5
    assert set(document["medians"]) == {"baseline", "tuned"}


def test_csv_has_one_line_per_run(sample: SampleStudy, tmp_path: Path) -> None:
    lines = list(csv.DictReader(written(sample, "csv", tmp_path).splitlines()))
    assert len(lines) == 1 + 40 + 10
    first = next(line for line in lines if line["role"] == "trial" and line["outcome"] == "ok")
    assert float(first["value"]) == float(first["metric.sustained_throughput_ops_s"])
    assert first["option.compression"].startswith("k")
    assert next(line for line in lines if line["outcome"] == "timeout")["value"] == ""


def test_parquet_has_the_rows_of_the_csv_as_numbers(sample: SampleStudy, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    lines = list(csv.DictReader(written(sample, "csv", tmp_path).splitlines()))
    with sample.opened() as folder:
        path, _ = write_as(folder, PARQUET, tmp_path / "runs.parquet", None)
    rows = parquet.read_table(path).to_pylist()
    assert [list(row) for row in rows] == [list(line) for line in lines]
    for row, line in zip(rows, lines, strict=True):
        assert row["role"] == line["role"]
        assert row["value"] == (float(line["value"]) if line["value"] else None)


@pytest.mark.parametrize(
    ("flag", "value", "extra"),
    [("--format", PARQUET, "parquet"), ("--importance", "fanova", "forest")],
)
def test_what_needs_an_absent_package_is_one_line_that_says_what_to_install(
    sample: SampleStudy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flag: str,
    value: str,
    extra: str,
) -> None:
    monkeypatch.setattr("lsmtune.errors.find_spec", lambda _name: None)
    with pytest.raises(InputError, match=rf"{flag}: needs .*: pip install 'lsmtune\[{extra}\]'"):
        report(sample.file, flag, value, "--output", tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_markdown_has_the_verdict_and_the_options(sample: SampleStudy, tmp_path: Path) -> None:
    text = written(sample, "md", tmp_path)
    assert "**Proven gain: 1." in text
    assert "| write\\_buffer\\_size |" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in tables)


def test_markdown_escapes_what_others_wrote(tmp_path: Path) -> None:
    study = SampleStudy(tmp_path)
    options = study.draw()
    run = study.failed(Outcome.CRASHED, "a | b\n<script>x</script> *c*", options)
    study.add_trial(0, options, run)
    study.close()
    text = written(study, "md", tmp_path)
    assert "<script>" not in text
    assert "a \\| b &lt;script&gt;x&lt;/script&gt; \\*c\\*" in text


@pytest.mark.parametrize("format_name", FORMATS)
def test_the_command_writes_into_the_study(sample: SampleStudy, format_name: str) -> None:
    if format_name == PARQUET:
        pytest.importorskip("pyarrow")
    told = report(sample.file, "--format", format_name)
    path = sample.path / "result" / f"report.{format_name}"
    assert told.splitlines()[-1] == str(path)
    assert path.is_file()


def test_the_command_says_it_in_json(sample: SampleStudy, tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    document = json.loads(report(sample.path, "--output", output, "--json"))
    assert document["report"] == {"path": str(output), "format": "html", "status": "finished"}
    assert document["verdict"]["outcome"] == "better"
    assert document["verdict"]["pairs"] == 5
    assert output.is_file()


def test_importance_by_name_and_none(sample: SampleStudy, tmp_path: Path) -> None:
    output = tmp_path / "report.json"

    def methods(*arguments: str) -> list[str]:
        report(sample.file, "--format", "json", "--output", output, "--force", *arguments)
        return [table["method"] for table in json.loads(output.read_text())["importances"]]

    assert methods() == ["ped-anova"]
    assert methods("--importance", "fanova") == ["fanova"]
    assert methods("--importance", "none") == []


def test_a_file_is_replaced_only_when_asked(sample: SampleStudy, tmp_path: Path) -> None:
    mine = tmp_path / "mine.html"
    mine.write_text("mine")
    arguments = (sample.file, "--importance", "none", "--output", mine)
    with pytest.raises(InputError, match=r"mine\.html: exists already; allowed: another --output"):
        report(*arguments)
    assert mine.read_text() == "mine"
    report(*arguments, "--force")
    assert "<html" in mine.read_text()


def test_the_folder_may_be_elsewhere(sample: SampleStudy, tmp_path: Path) -> None:
    copy = tmp_path / "study.yaml"
    copy.write_text(sample.file.read_text())
    output = tmp_path / "report.html"
    report(copy, "--dir", sample.path, "--output", output)
    assert output.is_file()


def test_an_unfinished_study_has_a_report(tmp_path: Path) -> None:
    study = SampleStudy(tmp_path)
    fill(study, trials=4)
    study.close()
    document = json.loads(report(study.file, "--json"))
    assert document["report"]["status"] == "unfinished"
    assert document["verdict"] is None


def test_wrong_input_is_one_clear_line(sample: SampleStudy, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "plain").mkdir()
    (tmp_path / "new.yaml").write_text("version: 1\n")
    for arguments, said in (
        ([tmp_path / "missing.yaml"], "no such file or folder"),
        ([tmp_path / "notes.txt"], "not a study"),
        ([tmp_path / "plain"], "plain"),
        ([tmp_path / "new.yaml"], "run `lsmtune tune"),
        ([sample.file, "--format", "htm"], "did you mean html?"),
        ([sample.file, "--importance", "anova"], "found 'anova'; allowed: ped-anova, fanova, none"),
        ([sample.file, "--dir", tmp_path / "nowhere"], "no such study folder"),
        ([sample.file, "--output", tmp_path], "is a directory"),
        ([sample.file, "--output", tmp_path / "report.md"], "allowed: --format md, or a name"),
    ):
        with pytest.raises(InputError) as caught:
            report(*arguments)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_study_without_measurements_says_what_to_do(tmp_path: Path) -> None:
    study = SampleStudy(tmp_path)
    study.close()
    with pytest.raises(InputError, match="no measurements yet; run `lsmtune tune"):
        report(study.file)
