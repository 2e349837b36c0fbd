"""`ray start` on loopback alone: `python -m study.cluster.node start --node-ip-address=127.0.0.1 ...`.

Ray takes 127.0.0.1 for a mistake and puts the machine's address in its place, on which its ports are then open to
everybody. A head whose address is 127.0.0.1 listens there alone.
"""

from ray._private import ray_constants
from ray.scripts.scripts import main

from study.address import stay_on_loopback

if __name__ == "__main__":
    ray_constants.ENABLE_RAY_CLUSTER = True  # more than one node, though their processes are told to keep to loopback
    stay_on_loopback()
    main()
