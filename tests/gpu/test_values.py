"""With values: a trial on the simulated device is the CPU's to rounding, whatever is asked of the device on its way."""

import json

import pytest
from simulated_gpu import missing, run_on_gpu

pytestmark = pytest.mark.skipif(bool(missing()), reason=str(missing()))

SCRIPT = """
import json, warnings
from gpu_trials import apart
warnings.simplefilter("ignore")
method = {"name": "eps_sup_info_nce", "regulariser": "fair_kl", "lambda": 1.0, "alpha": 0.1}
print(json.dumps(apart(method, epochs=1, augmentation="simclr", batch_size=128)))
"""


def test_a_trial_with_random_views_is_the_cpus() -> None:
    told = json.loads(run_on_gpu(SCRIPT))
    assert told.pop("figures") > 10
    assert told == {"keys": [], "most": pytest.approx(0, abs=1e-4)}
