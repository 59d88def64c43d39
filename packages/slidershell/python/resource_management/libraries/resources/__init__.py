"""Configuration files, folders of a store, and Hadoop's client."""

from resource_management.libraries.resources.copy_from_local import CopyFromLocal
from resource_management.libraries.resources.execute_hadoop import ExecuteHadoop
from resource_management.libraries.resources.hdfs_directory import HdfsDirectory
from resource_management.libraries.resources.properties_file import PropertiesFile
from resource_management.libraries.resources.template_config import TemplateConfig
from resource_management.libraries.resources.xml_config import XmlConfig

__all__ = ["CopyFromLocal", "ExecuteHadoop", "HdfsDirectory", "PropertiesFile", "TemplateConfig", "XmlConfig"]
