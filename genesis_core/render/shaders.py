"""GLSL sources (version 1.20, which every driver and llvmpipe take). Colours are shaded in linear light."""

from __future__ import annotations

from collections.abc import Iterable

LIGHT_PLACE = """
uniform mat4 u_light;         // world to shadow map, 0..1
uniform vec3 u_shadow_info;   // 1 / size, depth bias, strength (0 = no shadow)
varying vec3 v_light;
vec3 light_place(vec3 world, vec3 n) { return (u_light * vec4(world + n * (u_shadow_info.y * 2.0), 1.0)).xyz; }
"""

COMMON = """
#ifdef SOFT_SHADOWS
#define SHADOW_SHIFT 1.0
#else
#define SHADOW_SHIFT 0.5
#endif
uniform vec3 u_eye;
uniform vec3 u_sun_dir;       // unit, towards the sun
uniform vec3 u_sun;           // colour of the sun
uniform vec3 u_sky;           // light from above
uniform vec3 u_ground;        // light from below
uniform sampler2D u_shadow;
uniform vec3 u_shadow_info;   // 1 / size, depth bias, strength (0 = no shadow)
varying vec3 v_light;         // place in the shadow map, 0..1

float sun_visible() {
    if (u_shadow_info.z <= 0.0) return 1.0;
    vec3 q = v_light;
    float edge = min(min(q.x, q.y), min(1.0 - q.x, 1.0 - q.y));
    if (edge <= 0.002 || q.z >= 1.0) return 1.0;
    float texel = u_shadow_info.x;
    float d = q.z - 0.0006;
    float lit;
    vec2 cell = q.xy / texel - SHADOW_SHIFT;
    vec2 f = fract(cell);
    vec2 base = (floor(cell) + 0.5) * texel;
#ifdef SOFT_SHADOWS
    // bilinear comparison on 3x3 texels: soft edges without noise
    float sum[3];
    for (int j = 0; j < 3; j++) {
        float y = float(j) * texel;
        float a = step(d, texture2D(u_shadow, base + vec2(0.0, y)).r);
        float b = step(d, texture2D(u_shadow, base + vec2(texel, y)).r);
        float c = step(d, texture2D(u_shadow, base + vec2(2.0 * texel, y)).r);
        sum[j] = mix(a, b, f.x) + mix(b, c, f.x);
    }
    lit = 0.25 * (mix(sum[0], sum[1], f.y) + mix(sum[1], sum[2], f.y));
#elif defined(GATHER)
    vec4 g = step(vec4(d), textureGather(u_shadow, base + 0.5 * texel));
    lit = mix(mix(g.w, g.z, f.x), mix(g.x, g.y, f.x), f.y);
#else
    float a = step(d, texture2D(u_shadow, base).r);
    float b = step(d, texture2D(u_shadow, base + vec2(texel, 0.0)).r);
    float c = step(d, texture2D(u_shadow, base + vec2(0.0, texel)).r);
    float e = step(d, texture2D(u_shadow, base + vec2(texel, texel)).r);
    lit = mix(mix(a, b, f.x), mix(c, e, f.x), f.y);
#endif
    return mix(1.0, lit, u_shadow_info.z * smoothstep(0.0, 0.05, edge));
}

float fill_of(vec3 n) { return max(dot(n, normalize(vec3(-u_sun_dir.xy, 0.35))), 0.0) * 0.18; }

// light: what falls from the sky and the ground, sun: the sun's where it is seen; ndl, ndv: cosines at the normal
vec3 reflected(vec3 albedo, vec3 light, vec3 sun, float ndl, float ndv, vec3 v, float vis, vec4 material) {
    float shin = 8.0 + 120.0 * material.y;
    // cosine at the half vector; then a rational stand-in for pow(t, shin), after C. Schlick (1994)
    float t = max((ndl + ndv) * inversesqrt(max(2.0 + 2.0 * dot(u_sun_dir, v), 1e-4)), 0.0);
    float spec = material.x * (0.25 + material.y) * (t / (shin - shin * t + t)) * vis;
    float facing = clamp(1.0 - ndv, 0.0, 1.0);
    facing *= facing;
    float rim = facing * facing * (0.10 + 0.5 * material.w);
    return albedo * (light + sun * vis + material.z) + u_sun * (spec * 0.45) + u_sky * rim;
}

vec3 shade(vec3 albedo, vec3 n, vec3 world, vec4 material) {
    vec3 v = normalize(u_eye - world);
    float ndl = dot(n, u_sun_dir);
    float vis = ndl > 0.0 ? sun_visible() : 0.0;
    vec3 light = mix(u_ground, u_sky, 0.5 + 0.5 * n.z) + u_sky * fill_of(n);
    return reflected(albedo, light, u_sun * max(ndl, 0.0), ndl, dot(n, v), v, vis, material);
}

vec3 film(vec3 x) {
    // filmic curve fitted by K. Narkowicz (2015), then the display's gamma, taken as 2
    x = x * 0.82;
    vec3 y = clamp((x * (2.51 * x + 0.03)) / (x * (2.43 * x + 0.59) + 0.14), 0.0, 1.0);
    return sqrt(y);
}
"""

INSTANCE_INPUTS = """
#version 120
attribute vec3 a_pos;
attribute float a_cap;
attribute vec4 a_r0;
attribute vec4 a_r1;
attribute vec4 a_r2;
attribute vec4 a_scale;

vec3 local_position() { return a_pos * a_scale.xyz + vec3(0.0, 0.0, a_cap * a_scale.w); }
vec3 to_world(vec3 p) {
    return vec3(dot(a_r0.xyz, p), dot(a_r1.xyz, p), dot(a_r2.xyz, p)) + vec3(a_r0.w, a_r1.w, a_r2.w);
}
"""

GEOM_VERT = (
    INSTANCE_INPUTS
    + LIGHT_PLACE
    + """
attribute vec3 a_nrm;
attribute vec4 a_rgba;
attribute vec4 a_material;   // specular, shininess, emission, reflectance
#ifdef TEXTURED
attribute vec2 a_uv;
attribute vec4 a_tex;        // texrepeat x, y; 1 = by uv, 2 = by position; 1 = repeats per metre
varying vec3 v_local;
varying vec2 v_uv;
#endif
uniform mat4 u_view_projection;
varying vec3 v_world;
varying vec3 v_nrm;
varying vec4 v_rgba;
varying vec4 v_material;
void main() {
    vec3 p = local_position();
    v_world = to_world(p);
    vec3 n = a_nrm / max(a_scale.xyz, vec3(1e-6));
    v_nrm = normalize(vec3(dot(a_r0.xyz, n), dot(a_r1.xyz, n), dot(a_r2.xyz, n)));
    v_light = light_place(v_world, v_nrm);
#ifdef TEXTURED
    v_local = a_pos;
    vec2 flat_uv = 0.5 * (a_tex.w > 0.5 ? p.xy : a_pos.xy) + 0.5;
    v_uv = (a_tex.z > 1.5 ? flat_uv : a_uv) * a_tex.xy;
#endif
    v_rgba = a_rgba;
    v_material = a_material;
    gl_Position = u_view_projection * vec4(v_world, 1.0);
}
"""
)

GEOM_FRAG = (
    """
#version 120
varying vec3 v_world;
varying vec3 v_nrm;
#ifdef TEXTURED
varying vec3 v_local;
varying vec2 v_uv;
#endif
varying vec4 v_rgba;
varying vec4 v_material;
"""
    + COMMON
    + """
//TEXTURE
vec3 base_color() { return v_rgba.rgb; }
//END
void main() {
    vec3 n = normalize(v_nrm);
    vec3 albedo = base_color();
    albedo *= albedo;
    gl_FragColor = vec4(film(shade(albedo, n, v_world, v_material)), v_rgba.a);
}
"""
)

TEXTURE_2D = """
uniform sampler2D u_texture;
vec3 base_color() { return v_rgba.rgb * texture2D(u_texture, v_uv).rgb; }
"""

TEXTURE_CUBE = """
uniform samplerCube u_texture;
vec3 base_color() { return v_rgba.rgb * textureCube(u_texture, vec3(v_local.x, v_local.z, -v_local.y)).rgb; }
"""


def variant(source: str, features: Iterable[str]) -> str:
    """The shader with preprocessor names defined: SOFT_SHADOWS (nine shadow look-ups per pixel in place of four),
    GATHER (four in one, where the driver can), LINES and CHECKER (floors), TEXTURED.
    """
    names = sorted(features)
    head = "#version 130\n#extension GL_ARB_texture_gather : require\n" if "GATHER" in names else "#version 120\n"
    return source.replace("#version 120\n", head + "".join(f"#define {name}\n" for name in names), 1)


def geom_fragment(texture: str) -> str:
    """Fragment shader without a texture (""), with "2d", or with "cube"."""
    code = {"": None, "2d": TEXTURE_2D, "cube": TEXTURE_CUBE}[texture]
    if code is None:
        return GEOM_FRAG
    head, rest = GEOM_FRAG.split("//TEXTURE")
    return head + code + rest.split("//END")[1]


SHADOW_VERT = (
    INSTANCE_INPUTS
    + """
uniform mat4 u_light_clip;
varying float v_depth;
void main() {
    gl_Position = u_light_clip * vec4(to_world(local_position()), 1.0);
    v_depth = 0.5 * gl_Position.z + 0.5;
}
"""
)

SHADOW_FRAG = """
#version 120
varying float v_depth;
void main() { gl_FragColor = vec4(v_depth, 0.0, 0.0, 1.0); }
"""

FLOOR_VERT = (
    """
#version 120
"""
    + LIGHT_PLACE
    + """
attribute vec2 a_corner;
uniform mat4 u_view_projection;
uniform vec4 u_origin;       // a point of the plane below the camera, half size of the quad drawn
uniform vec3 u_axis_x;
uniform vec3 u_axis_y;
uniform vec3 u_axis_n;
uniform vec3 u_plane_pos;
varying vec3 v_world;
varying vec2 v_plane;        // coordinates in the plane's own frame [m]
void main() {
    v_world = u_origin.xyz + u_origin.w * (a_corner.x * u_axis_x + a_corner.y * u_axis_y);
    vec3 d = v_world - u_plane_pos;
    v_plane = vec2(dot(d, u_axis_x), dot(d, u_axis_y));
    v_light = light_place(v_world, u_axis_n);
    gl_Position = u_view_projection * vec4(v_world, 1.0);
}
"""
)

FLOOR_FRAG = (
    """
#version 120
varying vec3 v_world;
varying vec2 v_plane;
"""
    + COMMON
    + """
uniform vec3 u_color_a;      // sRGB
uniform vec3 u_color_b;
uniform vec3 u_line;         // colour of the lines between cells
uniform vec3 u_cells;        // cells per metre x, y; width of the lines as part of their distance (0 = none)
uniform float u_line_every;  // lines per cell
uniform vec4 u_floor_material;
uniform vec3 u_axis_n;
uniform vec3 u_floor_light;  // what falls on the plane from sky and ground
uniform vec4 u_floor_sun;    // what falls on it from the sun; cosine of the sun at the normal
uniform vec3 u_horizon;      // sRGB colour into which the floor fades
uniform vec2 u_fade;         // distances where fading begins and ends [m]
//FLOOR_TEXTURE

// box-filtered checker, after I. Quilez, "filtering the checkerboard pattern"
float checker(vec2 p, vec2 w) {
    vec2 i = 2.0 * (abs(fract((p - 0.5 * w) * 0.5) - 0.5) - abs(fract((p + 0.5 * w) * 0.5) - 0.5)) / w;
    return 0.5 - 0.5 * i.x * i.y;
}
float lines(vec2 p, vec2 w, float width) {
    vec2 d = abs(fract(p - 0.5) - 0.5);
    vec2 half_width = vec2(width * 0.5);
    vec2 cover = clamp((half_width - d) / max(w, vec2(1e-6)) + 0.5, 0.0, 1.0) * min(vec2(1.0), vec2(width) / w + 0.15);
    return max(cover.x, cover.y);
}
void main() {
    vec2 p = v_plane * u_cells.xy;
    vec2 w = max(fwidth(p), vec2(1e-5));
    vec3 color = u_color_a;
#ifdef CHECKER
    color = mix(u_color_a, u_color_b, checker(p, w));
#endif
#ifdef LINES
    color = mix(color, u_line, lines((p + 1.0) * u_line_every, w * u_line_every, u_cells.z));
#endif
    //FLOOR_SAMPLE
    vec3 v = u_eye - v_world;
    float far = length(v);
    v /= far;
    float vis = u_floor_sun.w > 0.0 ? sun_visible() : 0.0;
    float ndv = dot(u_axis_n, v);
    vec3 lit = film(
        reflected(color * color, u_floor_light, u_floor_sun.xyz, u_floor_sun.w, ndv, v, vis, u_floor_material)
    );
    gl_FragColor = vec4(mix(lit, u_horizon, smoothstep(u_fade.x, u_fade.y, far)), 1.0);
}
"""
)

SKY_VERT = """
#version 120
attribute vec2 a_corner;
uniform vec3 u_forward;
uniform vec3 u_right;
uniform vec3 u_up;
varying vec3 v_ray;
void main() {
    v_ray = u_forward + a_corner.x * u_right + a_corner.y * u_up;
    gl_Position = vec4(a_corner, 0.9999, 1.0);
}
"""

SKY_FRAG = """
#version 120
varying vec3 v_ray;
uniform vec3 u_zenith;
uniform vec3 u_horizon;
uniform vec3 u_nadir;
void main() {
    float z = normalize(v_ray).z;
    vec3 above = mix(u_horizon, u_zenith, pow(clamp(z * 1.6, 0.0, 1.0), 0.65));
    vec3 color = z > 0.0 ? above : mix(u_horizon, u_nadir, min(-z * 4.0, 1.0));
    // an ordered pattern hides the bands of 8-bit colours
    vec2 g = floor(mod(gl_FragCoord.xy, 2.0));
    float dither = (2.0 * g.x + 3.0 * g.y - 4.0 * g.x * g.y) * 0.25 - 0.375;
    gl_FragColor = vec4(color + dither / 255.0, 1.0);
}
"""

PICK_VERT = (
    INSTANCE_INPUTS
    + """
attribute vec2 a_id;         // row of the environment among the shown, geom
uniform mat4 u_view_projection;
varying vec2 v_id;
varying float v_depth;
void main() {
    v_id = a_id;
    gl_Position = u_view_projection * vec4(to_world(local_position()), 1.0);
}
"""
)

PICK_FRAG = """
#version 120
varying vec2 v_id;
void main() {
    float env = floor(v_id.x + 0.5), geom = floor(v_id.y + 0.5) + 1.0;
    float e1 = floor(env / 256.0), g1 = floor(geom / 256.0);
    gl_FragColor = vec4(env - 256.0 * e1, e1, geom - 256.0 * g1, g1) / 255.0;
}
"""
