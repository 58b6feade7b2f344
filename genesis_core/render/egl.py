"""Off-screen OpenGL contexts on a chosen EGL device, without a display.

Drawing happens on the GPU that `EGL_DEVICE_ID` and CUDA's variables name (`backend.choice`); EGL's order is not CUDA's.
Extensions used: EGL_EXT_device_enumeration, EGL_EXT_platform_device, EGL_KHR_surfaceless_context and, to know which
card a device is, EGL_EXT_device_drm, EGL_EXT_device_persistent_id, EGL_NV_device_cuda.
"""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path
from typing import Any

import msgspec

from genesis_core.errors import DeviceError, RenderError
from genesis_core.log import get_logger
from genesis_core.render.platform import prepare

log = get_logger(__name__)

PLATFORM_DEVICE = 0x313F  # EGL_PLATFORM_DEVICE_EXT
EXTENSIONS = 0x3055
VENDOR = 0x3053
DRM_DEVICE_FILE = 0x3233
DEVICE_UUID = 0x335C  # EGL_DEVICE_UUID_EXT
CUDA_DEVICE = 0x323A
RENDERER = 0x335F  # EGL_RENDERER_EXT
TIMEOUT = 20.0  # [s] a driver that does not answer must not hang the program

REMEDY = "install Mesa (Debian: apt-get install libegl1 libgl1 libgl1-mesa-dri) or the NVIDIA driver's EGL library"


class EglDevice(msgspec.Struct, frozen=True):
    """One device that EGL knows."""

    index: int
    name: str
    software: bool
    drm_file: str | None = None
    cuda_ordinal: int | None = None  # CUDA's number; a mask may have shifted it
    handle: int = 0
    pci: str = ""  # address of the card, as 0000:01:00.0
    uuid: str = ""  # as NVML writes it


def _egl() -> Any:
    prepare()
    try:
        from OpenGL import EGL
    except (ImportError, AttributeError, OSError) as error:
        raise RenderError(f"no EGL library could be loaded: {error}", hint=REMEDY) from None
    return EGL


def _proc(egl: Any, name: str, result: Any, *args: Any) -> Any:
    address = ctypes.cast(egl.eglGetProcAddress(name.encode()), ctypes.c_void_p).value
    return ctypes.CFUNCTYPE(result, *args)(address) if address else None


def list_egl_devices() -> list[EglDevice]:
    """All devices, in EGL's order; empty where the driver cannot enumerate. RenderError without an EGL library."""
    egl = _egl()
    pointer = ctypes.c_void_p
    query = _proc(egl, "eglQueryDevicesEXT", ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    if query is None:
        return []
    count = ctypes.c_int()
    if not query(0, None, ctypes.byref(count)) or count.value < 1:
        return []
    handles = (pointer * count.value)()
    query(count.value, handles, ctypes.byref(count))
    return [_describe(egl, i, handles[i] or 0) for i in range(count.value)]


def _describe(egl: Any, index: int, handle: int) -> EglDevice:
    pointer = ctypes.c_void_p
    string = _proc(egl, "eglQueryDeviceStringEXT", ctypes.c_char_p, pointer, ctypes.c_int)
    attribute = _proc(egl, "eglQueryDeviceAttribEXT", ctypes.c_uint, pointer, ctypes.c_int, pointer)

    def text(what: int) -> str:
        return (string(handle, what) or b"").decode(errors="replace") if string else ""

    extensions = set(text(EXTENSIONS).split())
    software = "EGL_MESA_device_software" in extensions
    drm = text(DRM_DEVICE_FILE) if "EGL_EXT_device_drm" in extensions else ""
    cuda = None
    if "EGL_NV_device_cuda" in extensions and attribute:
        value = ctypes.c_ssize_t()
        if attribute(handle, CUDA_DEVICE, ctypes.byref(value)):
            cuda = value.value
    name = text(RENDERER) if "EGL_EXT_device_query_name" in extensions else ""
    if not name:
        name = "Mesa software renderer" if software else (f"GPU at {drm}" if drm else "GPU")
    uuid = _uuid(egl, handle) if "EGL_EXT_device_persistent_id" in extensions else ""
    return EglDevice(index, name, software, drm or None, cuda, handle, _pci_address(drm), uuid)


def _uuid(egl: Any, handle: int) -> str:
    pointer, number = ctypes.c_void_p, ctypes.c_int
    binary = _proc(egl, "eglQueryDeviceBinaryEXT", ctypes.c_uint, pointer, number, number, pointer, pointer)
    raw, size = (ctypes.c_ubyte * 16)(), ctypes.c_int()
    if binary is None or not binary(handle, DEVICE_UUID, 16, raw, ctypes.byref(size)) or size.value != 16:
        return ""
    digits = bytes(raw).hex()
    return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _pci_address(drm: str) -> str:
    """The PCI address behind a device file like /dev/dri/card0."""
    if not drm:
        return ""
    try:
        address = (Path("/sys/class/drm") / Path(drm).name / "device").resolve(strict=True).name
    except OSError:
        return ""
    return address if address.count(":") == 2 else ""


def chosen_device(devices: list[EglDevice], index: int | None = None) -> EglDevice | None:
    """The device of EGL number `index`; without one the device of the GPU that this process's variables name, else None
    (EGL's default).

    Where EGL does not list that GPU it is the software device, with a warning that says why. RenderError for a number
    that does not exist and for variables that contradict each other.
    """
    if index is not None:
        if not 0 <= index < len(devices):
            raise RenderError(f"device = {index}: there is no such EGL device", hint=_listing(devices))
        return devices[index]
    from genesis_core.backend.choice import choose
    from genesis_core.backend.devices import read_machine

    machine, _ = read_machine(devices, computing=False)
    try:
        choice = choose(os.environ, machine)
    except DeviceError as error:
        raise RenderError(error.what, where=error.where, hint=error.hint) from None
    if choice.draw_fallback:
        there = f"drawing on {choice.draw.name}" if choice.draw else "drawing on EGL's default device"
        log.warning("%s: %s", there, choice.draw_fallback)
    return next((d for d in devices if choice.draw is not None and d.index == choice.draw.index), None)


def _listing(devices: list[EglDevice]) -> str:
    return "EGL devices here: " + (", ".join(f"{d.index} {d.name}" for d in devices) or "none")


class EglContext:
    """A surfaceless desktop-OpenGL context. Belongs to the thread that makes it current."""

    def __init__(self, device: int | None = None) -> None:
        self._egl = _egl()
        self.device: EglDevice | None = None
        self._display: Any = None
        self._context: Any = None
        _with_timeout(lambda: self._create(device))
        self.make_current()

    def _create(self, index: int | None) -> None:
        devices = list_egl_devices()
        self.device = chosen_device(devices, index)
        if self.device is None and devices and not os.environ.get("DISPLAY"):
            self.device = devices[0]  # the default display needs a window system, a device does not
        try:
            self._open()
        except RenderError as error:
            software = next((d for d in devices if d.software), None)
            if index is not None or software is None or software == self.device:
                raise
            log.warning("drawing on %s, in software: %s", software.name, error.what)
            self.device = software
            self._open()

    def _open(self) -> None:
        egl = self._egl
        self._display = self._open_display()
        wanted = [
            egl.EGL_SURFACE_TYPE, egl.EGL_PBUFFER_BIT, egl.EGL_RENDERABLE_TYPE, egl.EGL_OPENGL_BIT,
            egl.EGL_RED_SIZE, 8, egl.EGL_GREEN_SIZE, 8, egl.EGL_BLUE_SIZE, 8, egl.EGL_NONE,
        ]  # fmt: skip
        configs = (egl.EGLConfig * 1)()
        count = egl.EGLint()
        attributes = (egl.EGLint * len(wanted))(*wanted)
        try:
            if not egl.eglChooseConfig(self._display, attributes, configs, 1, ctypes.byref(count)) or count.value < 1:
                raise RenderError(f"the EGL device {self._name} has no OpenGL configuration", hint=REMEDY)
            egl.eglBindAPI(egl.EGL_OPENGL_API)
            self._context = egl.eglCreateContext(self._display, configs[0], egl.EGL_NO_CONTEXT, None)
        except egl.EGLError as error:
            raise RenderError(f"no OpenGL context could be made on {self._name}: {error}", hint=REMEDY) from None
        if not self._context:
            raise RenderError(f"no OpenGL context could be made on {self._name}", hint=REMEDY)

    @property
    def _name(self) -> str:
        return f"{self.device.index} ({self.device.name})" if self.device else "EGL's default"

    def _open_display(self) -> Any:
        egl = self._egl
        if self.device is None:
            display = egl.eglGetDisplay(egl.EGL_DEFAULT_DISPLAY)
        else:
            pointer = ctypes.c_void_p
            get = _proc(egl, "eglGetPlatformDisplayEXT", pointer, ctypes.c_uint, pointer, pointer)
            display = pointer(get(PLATFORM_DEVICE, self.device.handle, None)) if get else None
        major, minor = egl.EGLint(), egl.EGLint()
        try:
            if display and egl.eglInitialize(display, ctypes.byref(major), ctypes.byref(minor)):
                return display
        except egl.EGLError:
            pass
        raise RenderError(f"the EGL device {self._name} does not start", hint=REMEDY)

    def make_current(self) -> None:
        """Makes this the context of the calling thread."""
        egl = self._egl
        none = egl.EGL_NO_SURFACE
        try:
            done = egl.eglMakeCurrent(self._display, none, none, self._context)
        except egl.EGLError as error:
            raise RenderError(f"the OpenGL context of {self._name} cannot be used: {error}", hint=REMEDY) from None
        if not done:
            raise RenderError(f"the OpenGL context of {self._name} cannot be used", hint=REMEDY)

    def close(self) -> None:
        """Frees the context. May be called again."""
        if self._context is not None:
            egl = self._egl
            egl.eglMakeCurrent(self._display, egl.EGL_NO_SURFACE, egl.EGL_NO_SURFACE, egl.EGL_NO_CONTEXT)
            egl.eglDestroyContext(self._display, self._context)
            self._context = None


def _with_timeout(create: Any) -> None:
    """Runs `create` in a thread for at most TIMEOUT seconds: a driver that hangs is an error and not a hang."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            create()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, name="egl-create", daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    if thread.is_alive():
        raise RenderError(f"the OpenGL driver did not answer within {TIMEOUT:.0f} s", hint=REMEDY)
    if failures:
        raise failures[0]


def context_info() -> dict[str, str]:
    """Vendor, renderer and version of the current context, and whether it is software."""
    from OpenGL import GL

    def text(name: Any) -> str:
        value = GL.glGetString(name)
        return value.decode(errors="replace") if value else "unknown"

    info = {"vendor": text(GL.GL_VENDOR), "renderer": text(GL.GL_RENDERER), "version": text(GL.GL_VERSION)}
    info["software"] = "yes" if is_software(info["renderer"]) else "no"
    return info


def is_software(renderer: str) -> bool:
    """Whether a GL_RENDERER string names a software renderer."""
    return any(name in renderer.lower() for name in ("llvmpipe", "softpipe", "swrast", "software"))


def describe_context() -> str:
    """The current context in one line."""
    info = context_info()
    kind = "software" if info["software"] == "yes" else "GPU"
    return f"{info['renderer']} ({kind}), OpenGL {info['version']}"
