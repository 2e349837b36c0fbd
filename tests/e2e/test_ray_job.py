"""A study file is found by name inside a Ray job, where the package is an upload of the checkout."""

import subprocess
import sys

import pytest
from helpers import ROOT

JOB = """
import os, sys, time
os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
import ray
from ray.job_submission import JobStatus, JobSubmissionClient

context = ray.init(address="local", num_cpus=1, include_dashboard=True, dashboard_port=0, log_to_driver=False)
client = JobSubmissionClient("http://" + context.dashboard_url)
upload = {"working_dir": sys.argv[1], "excludes": [".git", ".venv*", "studies", "tests", ".*_cache"]}
job = client.submit_job(entrypoint=sys.executable + " -m study plan quickstart --fast", runtime_env=upload)
while not client.get_job_status(job).is_terminal():
    time.sleep(0.5)
print(client.get_job_status(job), client.get_job_logs(job))
ray.shutdown()
"""


@pytest.mark.slow
def test_a_ray_job_finds_the_study_files() -> None:
    done = subprocess.run([sys.executable, "-c", JOB, str(ROOT)], capture_output=True, text=True, timeout=280, cwd="/")
    assert "SUCCEEDED" in done.stdout, done.stdout + done.stderr
    assert "study quickstart" in done.stdout
