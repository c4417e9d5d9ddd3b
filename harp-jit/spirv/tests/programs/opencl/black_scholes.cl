// European options by the formula of Black and Scholes (1973), with the polynomial for the normal distribution of
// Abramowitz and Stegun, 26.2.17: four at a time in single precision, one at a time in double precision.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

float4 normal(float4 x) {
    float4 size = fabs(x);
    float4 t = 1 / (1 + 0.2316419f * size);
    float4 sum = t * (0.319381530f + t * (-0.356563782f + t * (1.781477937f + t * (-1.821255978f + t * 1.330274429f))));
    float4 tail = 0.39894228f * exp(-0.5f * size * size) * sum;
    return select(1 - tail, tail, x < 0);
}

kernel void single_precision(global const float4 *random, global float4 *calls, global float4 *puts) {
    size_t i = get_global_id(0) + get_global_id(1) * get_global_size(0);
    float4 r = random[i];
    float4 price = mix((float4)10, (float4)100, r), strike = mix((float4)10, (float4)100, 1 - r);
    float4 years = mix((float4)1, (float4)10, r);
    float4 rate = mix((float4)0.01f, (float4)0.05f, r), volatility = mix((float4)0.1f, (float4)0.5f, r);
    float4 spread = volatility * sqrt(years);
    float4 d1 = (log(price / strike) + (rate + 0.5f * volatility * volatility) * years) / spread;
    float4 d2 = d1 - spread;
    float4 discounted = strike * exp(-rate * years);
    calls[i] = price * normal(d1) - discounted * normal(d2);
    puts[i] = discounted * normal(-d2) - price * normal(-d1);
}

double normal_double(double x) {
    double size = fabs(x), t = 1 / (1 + 0.2316419 * size);
    double sum = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
    double tail = 0.3989422804014327 * exp(-0.5 * size * size) * sum;
    return x < 0 ? tail : 1 - tail;
}

kernel void double_precision(global const double *random, global double *calls, global double *puts) {
    size_t i = get_global_id(0) + get_global_id(1) * get_global_size(0);
    double r = random[i];
    double price = 10 + 90 * r, strike = 100 - 90 * r, years = 1 + 9 * r, rate = 0.01 + 0.04 * r, volatility = 0.1 + 0.4 * r;
    double spread = volatility * sqrt(years);
    double d1 = (log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / spread, d2 = d1 - spread;
    double discounted = strike * exp(-rate * years);
    calls[i] = price * normal_double(d1) - discounted * normal_double(d2);
    puts[i] = discounted * normal_double(-d2) - price * normal_double(-d1);
}
