"""The script that people write: Optuna's TPE around `lsmtune bench`, for as long as a study took.

    .venv/bin/python benchmarks/against_tuners/short_script.py 360 1    # seconds, seed

Five options of RocksDB, those that `lsmtune init` writes, and YCSB's workload B with 300,000
records. What it recommends is its best single run. The last line that it prints is a configuration
as `lsmtune contest` takes it (`docs/benchmarks/against_tuners/README.md`).
"""

import json
import subprocess
import sys

import optuna

KIB, MIB, TABLE = 2**10, 2**20, "block_based_table_factory."
BENCH = [sys.executable, "-m", "lsmtune.cli.main", "bench", "--json", "--engine", "rocksdb"]
BENCH += ["--workload", "ycsb-b", "-w", "recordcount=300000", "--memory", "4GiB"]


def objective(trial: optuna.Trial) -> float:
    options: dict[str, str | int] = {
        TABLE + "block_size": KIB * trial.suggest_int("block_kib", 1, 64, log=True),
        TABLE + "block_cache": MIB * trial.suggest_int("cache_mib", 8, 256, log=True),
        TABLE + "filter_policy": trial.suggest_categorical(
            "filter", ["nullptr", "bloomfilter:10:false"]
        ),
        "compression": trial.suggest_categorical(
            "compression", ["kNoCompression", "kSnappyCompression", "kLZ4Compression"]
        ),
        "write_buffer_size": MIB * trial.suggest_int("buffer_mib", 1, 64, log=True),
    }
    trial.set_user_attr("options", options)
    stated = [text for name, value in options.items() for text in ("-o", f"{name}={value}")]
    done = subprocess.run([*BENCH, *stated], capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise optuna.TrialPruned
    (run,) = json.loads(done.stdout)["measurements"]
    return float(run["phases"][-1]["sustained_throughput_ops_s"])


def main() -> None:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, timeout=seconds)
    print(f"{len(study.trials)} trials, the best {study.best_value:,.0f} ops/s")
    best = study.best_trial.user_attrs["options"]
    print(",".join(f"{name}={value}" for name, value in best.items()))


if __name__ == "__main__":
    main()
