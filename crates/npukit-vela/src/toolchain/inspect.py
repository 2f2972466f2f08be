"""Loads what npukit uses and prints, as one line of JSON, the versions and the place of Vela's configurations."""
import importlib.metadata
import json
import os

import ethosu
from ethosu import regor  # noqa: F401 (loading it is the check)
from ai_edge_litert import interpreter  # noqa: F401

packages = {}
for distribution in importlib.metadata.distributions():
    name = distribution.metadata["Name"].lower().replace("_", "-")
    packages[name] = distribution.version
if "tflite-micro" in packages:
    from tflite_micro import runtime  # noqa: F401

folder = list(ethosu.__path__)[0]
print(json.dumps({"packages": packages, "vela_ini": os.path.join(folder, "config_files", "Arm", "vela.ini")}))
