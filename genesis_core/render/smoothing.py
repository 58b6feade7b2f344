"""Smooth edges in a finished picture, for software renderers, where multisampling doubles the cost of everything.

A small edge filter in the manner of T. Lottes' FXAA: where the brightness (the green of the colour stands for it)
around a pixel varies, it is averaged along the direction of the edge. Raw GL: it stands between framebuffers that
gloo does not own.
"""

from __future__ import annotations

import numpy as np

from genesis_core.render.shader import PLACES, Shader

VERTEX = """
#version 400 compatibility
in vec2 a_corner;
void main() { gl_Position = vec4(a_corner, 0.0, 1.0); }
"""

# Without branches: a software renderer computes both sides of each. Seven brightnesses come from two look-ups.
FRAGMENT = """
#version 400 compatibility
uniform sampler2D u_image;
uniform vec2 u_pixel;   // 1 / size
void main() {
    vec2 at = gl_FragCoord.xy * u_pixel;
    vec4 a = textureGather(u_image, at - 0.5 * u_pixel, 1);   // west, here, south, southwest
    vec4 b = textureGather(u_image, at + 0.5 * u_pixel, 1);   // north, northeast, east, here
    float low = min(min(min(a.x, a.z), min(b.x, b.z)), a.y);
    float high = max(max(max(a.x, a.z), max(b.x, b.z)), a.y);
    vec2 along = vec2(a.z - b.x, b.z - a.x);                  // across the brightness' slope
    along /= max(abs(along.x), abs(along.y)) + 0.002;
    vec3 near = texture2D(u_image, at + 0.5 * along * u_pixel).rgb;
    vec3 far = texture2D(u_image, at - 0.5 * along * u_pixel).rgb;
    vec3 here = texelFetch(u_image, ivec2(gl_FragCoord.xy), 0).rgb;
    float edge = step(max(0.03, 0.10 * high), high - low);
    gl_FragColor = vec4(mix(here, 0.5 * (near + far), edge), 1.0);
}
"""


class Smoothing:
    """The filter, in the context that is current when it is made. Raises RenderError where the driver is too old."""

    def __init__(self) -> None:
        from OpenGL import GL

        self._gl = GL
        self._shader = Shader(VERTEX, FRAGMENT)
        corners = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]], np.float32)
        self._buffer = int(GL.glGenBuffers(1))
        GL.glBindBuffer(GL.GL_ARRAY_BUFFER, self._buffer)
        GL.glBufferData(GL.GL_ARRAY_BUFFER, corners.nbytes, corners, GL.GL_STATIC_DRAW)

    def apply(self, texture: int, framebuffer: int, width: int, height: int) -> None:
        """Draws the smoothed texture into a framebuffer of the same size."""
        gl = self._gl
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, framebuffer)
        gl.glViewport(0, 0, width, height)
        for state in (gl.GL_DEPTH_TEST, gl.GL_CULL_FACE, gl.GL_BLEND, gl.GL_SCISSOR_TEST):
            gl.glDisable(state)
        program = gl.glGetIntegerv(gl.GL_CURRENT_PROGRAM)
        self._shader.use()
        self._shader.set_texture("u_image", 0, gl.GL_TEXTURE_2D, texture)
        self._shader.set("u_pixel", (1 / width, 1 / height))
        corner = PLACES["a_corner"]
        gl.glBindBuffer(gl.GL_ARRAY_BUFFER, self._buffer)
        gl.glEnableVertexAttribArray(corner)
        gl.glVertexAttribPointer(corner, 2, gl.GL_FLOAT, False, 0, None)
        gl.glDrawArrays(gl.GL_TRIANGLE_STRIP, 0, 4)
        gl.glDisableVertexAttribArray(corner)
        gl.glBindTexture(gl.GL_TEXTURE_2D, 0)
        gl.glUseProgram(program)

    def close(self) -> None:
        self._gl.glDeleteBuffers(1, [self._buffer])
        self._shader.close()
