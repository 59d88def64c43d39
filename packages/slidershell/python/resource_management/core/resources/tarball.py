"""An archive that is unpacked into a folder."""

from resource_management.core.archive import unpack
from resource_management.core.base import Resource
from resource_management.core.logger import Logger

__all__ = ["Tarball"]


class Tarball(Resource):
    """Unpacks a tar file, compressed or not, or a file whose name ends with zip. location is a folder that exists."""

    arguments = {"package_name": None, "location": None}
    default_action = "install"

    def action_install(self):
        source = self.package_name or self.name
        Logger.info("unpacking {} to {}".format(source, self.location))
        unpack(source, self.location)
