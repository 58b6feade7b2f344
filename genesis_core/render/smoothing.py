"""Smooth edges in a finished picture, for software renderers, where multisampling doubles the cost of everything.

A small edge filter in the manner of T. Lottes' FXAA: where the brightness around a pixel varies, it is averaged along
the direction of the edge. Raw GL, since it stands between framebuffers that gloo does not own.
"""

from __future__ import annotations

import numpy as np

VERTEX = """
#version 120
attribute vec2 a_corner;
varying vec2 v_at;
void main() {
    v_at = 0.5 * a_corner + 0.5;
    gl_Position = vec4(a_corner, 0.0, 1.0);
}
"""

FRAGMENT = """
#version 120
uniform sampler2D u_image;
uniform vec2 u_pixel;   // 1 / size
varying vec2 v_at;
float luma(vec3 c) { return dot(c, vec3(0.299, 0.587, 0.114)); }
void main() {
    vec3 here = texture2D(u_image, v_at).rgb;
    float m = luma(here);
    float nw = luma(texture2D(u_image, v_at + u_pixel * vec2(-0.5, 0.5)).rgb);
    float ne = luma(texture2D(u_image, v_at + u_pixel * vec2(0.5, 0.5)).rgb);
    float sw = luma(texture2D(u_image, v_at + u_pixel * vec2(-0.5, -0.5)).rgb);
    float se = luma(texture2D(u_image, v_at + u_pixel * vec2(0.5, -0.5)).rgb);
    float low = min(m, min(min(nw, ne), min(sw, se)));
    float high = max(m, max(max(nw, ne), max(sw, se)));
    if (high - low < max(0.03, 0.10 * high)) {
        gl_FragColor = vec4(here, 1.0);
        return;
    }
    vec2 along = vec2(-((nw + ne) - (sw + se)), (nw + sw) - (ne + se));
    float small = max((nw + ne + sw + se) * 0.03, 0.008);
    along = clamp(along / (min(abs(along.x), abs(along.y)) + small), -6.0, 6.0) * u_pixel;
    vec3 near = 0.5 * (texture2D(u_image, v_at - along / 6.0).rgb + texture2D(u_image, v_at + along / 6.0).rgb);
    vec3 far = 0.25 * (texture2D(u_image, v_at - along * 0.5).rgb + texture2D(u_image, v_at + along * 0.5).rgb);
    vec3 wide = 0.5 * near + far;
    float w = luma(wide);
    gl_FragColor = vec4(w < low || w > high ? near : wide, 1.0);
}
"""


class Smoothing:
    """The filter, in the context that is current when it is made."""

    def __init__(self) -> None:
        from OpenGL import GL
        from OpenGL.GL import shaders

        self._gl = GL
        self._program = shaders.compileProgram(
            shaders.compileShader(VERTEX, GL.GL_VERTEX_SHADER),
            shaders.compileShader(FRAGMENT, GL.GL_FRAGMENT_SHADER),
            validate=False,
        )
        self._corner = GL.glGetAttribLocation(self._program, "a_corner")
        self._pixel = GL.glGetUniformLocation(self._program, "u_pixel")
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
        gl.glUseProgram(self._program)
        gl.glActiveTexture(gl.GL_TEXTURE0)
        gl.glBindTexture(gl.GL_TEXTURE_2D, texture)
        gl.glUniform2f(self._pixel, 1 / width, 1 / height)
        gl.glBindBuffer(gl.GL_ARRAY_BUFFER, self._buffer)
        gl.glEnableVertexAttribArray(self._corner)
        gl.glVertexAttribPointer(self._corner, 2, gl.GL_FLOAT, False, 0, None)
        gl.glDrawArrays(gl.GL_TRIANGLE_STRIP, 0, 4)
        gl.glDisableVertexAttribArray(self._corner)
        gl.glBindTexture(gl.GL_TEXTURE_2D, 0)
        gl.glUseProgram(0)

    def close(self) -> None:
        self._gl.glDeleteBuffers(1, [self._buffer])
        self._gl.glDeleteProgram(self._program)
