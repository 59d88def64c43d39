"""The log of a script: stdout, and stderr for errors; passwords are kept out of it."""

import logging

__all__ = ["Logger"]


class Logger:
    """What scripts log with. Texts that format() marked with !h or !p appear as they were protected."""

    logger = logging.getLogger("resource_management")
    sensitive_strings = {}  # text with the secret → text without it

    @staticmethod
    def debug(text):
        Logger.logger.debug("%s", Logger.get_protected_text(text))

    @staticmethod
    def info(text):
        Logger.logger.info("%s", Logger.get_protected_text(text))

    @staticmethod
    def warning(text):
        Logger.logger.warning("%s", Logger.get_protected_text(text))

    warn = warning

    @staticmethod
    def error(text):
        Logger.logger.error("%s", Logger.get_protected_text(text))

    @staticmethod
    def exception(text):
        Logger.logger.exception("%s", Logger.get_protected_text(text))

    @staticmethod
    def get_protected_text(text):
        """The text without the secrets that are known."""
        text = str(text)
        for secret in sorted(Logger.sensitive_strings, key=len, reverse=True):  # one may hold another
            text = text.replace(secret, Logger.sensitive_strings[secret])
        return text
