"""A GL program whose attributes have the same places in all programs, so that one vertex array serves every pass.

Raw GL beside gloo: gloo points a program at its buffers anew for each draw, in Python, which for the many small batches
of a scene takes longer than drawing them. `raw_section` keeps the two from disturbing each other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from genesis_core.errors import RenderError

PLACES = {
    name: place
    for place, name in enumerate(
        ("a_pos", "a_cap", "a_nrm", "a_uv", "a_r0", "a_r1", "a_r2", "a_scale", "a_rgba", "a_material", "a_tex", "a_id")
    )
} | {"a_corner": 0}


class Shader:
    """A program, in the context that is current when it is made."""

    def __init__(self, vertex: str, fragment: str) -> None:
        from OpenGL import GL

        self._gl = GL
        self._id = GL.glCreateProgram()
        for source, kind in ((vertex, GL.GL_VERTEX_SHADER), (fragment, GL.GL_FRAGMENT_SHADER)):
            shader = GL.glCreateShader(kind)
            GL.glShaderSource(shader, source)
            GL.glCompileShader(shader)
            if not GL.glGetShaderiv(shader, GL.GL_COMPILE_STATUS):
                raise RenderError(f"the GL driver refuses a shader: {_text(GL.glGetShaderInfoLog(shader))}")
            GL.glAttachShader(self._id, shader)
            GL.glDeleteShader(shader)  # goes with the program
        for name, place in PLACES.items():
            GL.glBindAttribLocation(self._id, place, name)
        GL.glLinkProgram(self._id)
        if not GL.glGetProgramiv(self._id, GL.GL_LINK_STATUS):
            raise RenderError(f"the GL driver refuses a program: {_text(GL.glGetProgramInfoLog(self._id))}")
        self._places: dict[str, int] = {}

    def use(self) -> None:
        self._gl.glUseProgram(self._id)

    def set(self, name: str, value: Any) -> None:
        """A uniform of the program in use: 1 to 4 numbers, or a 4x4 matrix as NumPy writes it."""
        gl = self._gl
        at = self._place(name)
        if at < 0:
            return  # this variant of the shader does without it
        data = np.ascontiguousarray(value, np.float32)
        if data.size == 16:
            gl.glUniformMatrix4fv(at, 1, True, data)
        else:
            (gl.glUniform1fv, gl.glUniform2fv, gl.glUniform3fv, gl.glUniform4fv)[data.size - 1](at, 1, data)

    def set_texture(self, name: str, unit: int, target: int, texture: int) -> None:
        """Binds a texture to a unit, and a sampler of the program in use to that unit."""
        gl = self._gl
        at = self._place(name)
        if at < 0:
            return
        gl.glActiveTexture(gl.GL_TEXTURE0 + unit)
        gl.glBindTexture(target, texture)
        gl.glUniform1i(at, unit)

    def _place(self, name: str) -> int:
        if name not in self._places:
            self._places[name] = int(self._gl.glGetUniformLocation(self._id, name))
        return self._places[name]

    def close(self) -> None:
        self._gl.glDeleteProgram(self._id)


def gather_feature() -> frozenset[str]:
    """{"GATHER"} where the driver of the current context looks up four texels at once (see `shaders.variant`)."""
    from OpenGL import GL

    names = GL.glGetString(GL.GL_EXTENSIONS)
    return frozenset({"GATHER"} if names and b"GL_ARB_texture_gather" in names else ())


def _text(log: Any) -> str:
    return (log.decode(errors="replace") if isinstance(log, bytes) else str(log)).strip()[:400]


@contextlib.contextmanager
def raw_section(canvas: Any) -> Iterator[None]:
    """Inside, raw GL may change the program and the vertex array; gloo finds them afterwards as it left them."""
    from OpenGL import GL

    canvas.flush()
    program = GL.glGetIntegerv(GL.GL_CURRENT_PROGRAM)
    yield
    GL.glUseProgram(program)
    GL.glActiveTexture(GL.GL_TEXTURE0)


def gl_texture(canvas: Any, texture: Any) -> int:
    """The number of a gloo texture in the current context."""
    parser = canvas.context.shared.parser
    if parser.get_object(texture.id) is None:  # no gloo program has used it yet: gloo makes textures when it must
        canvas.context.glir.associate(texture.glir)
        canvas.flush()
    return int(parser.get_object(texture.id).handle)
