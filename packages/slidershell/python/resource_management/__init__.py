"""The library that the command scripts of Slider app packages import.

Scripts say `from resource_management import *` and expect the names below, the sub-packages `functions` and
`source` among them. `re` is there because scripts of published packages use it without importing it.
"""

import re

from resource_management.core import (
    environment, exceptions, logger, shell, source)
from resource_management.core.base import Resource
from resource_management.core.environment import Environment
from resource_management.core.exceptions import (
    ClientComponentHasNoStatus, ClientComponentHasNoStatusCommand, ComponentIsNotRunning, ExecuteTimeoutException,
    Fail, InvalidArgument)
from resource_management.core.logger import Logger
from resource_management.core.resources.host import Group, Package, Service, User
from resource_management.core.resources.system import Directory, Execute, ExecuteScript, File, Link
from resource_management.core.resources.tarball import Tarball
from resource_management.core.shell import call, checked_call, quote_bash_args
from resource_management.core.source import DownloadSource, InlineTemplate, Source, StaticFile, Template
from resource_management.core.utils import checked_unite
from resource_management.libraries import functions, resources, script
from resource_management.libraries.functions import (
    check_process_status, default, format, get_kinit_path, get_port_from_url, is_empty, substitute_vars)
from resource_management.libraries.resources import (
    CopyFromLocal, ExecuteHadoop, HdfsDirectory, PropertiesFile, TemplateConfig, XmlConfig)
from resource_management.libraries.script import ConfigDictionary, Script, UnknownConfiguration

__all__ = [
    "ClientComponentHasNoStatus", "ClientComponentHasNoStatusCommand", "ComponentIsNotRunning", "ConfigDictionary",
    "CopyFromLocal", "Directory", "DownloadSource", "Environment", "Execute", "ExecuteHadoop", "ExecuteScript",
    "ExecuteTimeoutException", "Fail", "File", "Group", "HdfsDirectory", "InlineTemplate", "InvalidArgument", "Link",
    "Logger", "Package", "PropertiesFile", "Resource", "Script", "Service", "Source", "StaticFile", "Tarball",
    "Template", "TemplateConfig", "UnknownConfiguration", "User", "XmlConfig", "call", "check_process_status",
    "checked_call", "checked_unite", "default", "environment", "exceptions", "format", "functions", "get_kinit_path",
    "get_port_from_url", "is_empty", "logger", "quote_bash_args", "re", "resources", "script", "shell", "source",
    "substitute_vars",
]
