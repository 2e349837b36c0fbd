"""The Python interface, for notebooks and scripts: `study.run`, `study.load`, `study.studies`, `study.loss`.

It does what the commands do, and returns pandas tables, figures and paths.
"""

import warnings

from study import writable_folders

warnings.filterwarnings("ignore", message="IProgress not found", module="tqdm")  # no bar of tqdm's is ever shown
writable_folders.set_library_folders()
