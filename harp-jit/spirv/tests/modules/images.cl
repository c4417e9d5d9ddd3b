// A kernel with an image, which is refused, and one without.

constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;

kernel void with_image(read_only image2d_t image, global float4 *out) {
    out[get_global_id(0)] = read_imagef(image, nearest, (int2)(get_global_id(0), 0));
}

kernel void without(global int *out) {
    out[get_global_id(0)] = 1;
}
