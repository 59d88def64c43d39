"""Configuration files and folders of a store."""

from resource_management.libraries.resources.hdfs_directory import HdfsDirectory
from resource_management.libraries.resources.properties_file import PropertiesFile
from resource_management.libraries.resources.template_config import TemplateConfig
from resource_management.libraries.resources.xml_config import XmlConfig

__all__ = ["HdfsDirectory", "PropertiesFile", "TemplateConfig", "XmlConfig"]
