"""The Python interface, for notebooks and scripts: `study.run`, `study.load`, `study.studies`, `study.loss`.

What it does is what the commands do; what it gives are pandas tables, figures and paths.
"""

import warnings

from study import places

warnings.filterwarnings("ignore", message="IProgress not found", module="tqdm")  # no bar of tqdm's is ever shown
places.set_up()
