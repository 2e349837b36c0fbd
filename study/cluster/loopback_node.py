"""`ray start` on loopback alone: `python -m study.cluster.loopback_node start --node-ip-address=127.0.0.1 ...`.

Ray takes 127.0.0.1 for a mistake and replaces it by the machine's address, where its ports are open to everybody. A
head whose address is 127.0.0.1 listens there alone.
"""

from study.upstream.ray_internals import run_ray_command_on_loopback

if __name__ == "__main__":
    run_ray_command_on_loopback()
