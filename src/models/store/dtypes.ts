/** Weights as transformers.js names them, with the end of their file's name; the best on a CPU first. */
const DTYPES = {
  q4: "_q4",
  q8: "_quantized",
  int8: "_int8",
  uint8: "_uint8",
  bnb4: "_bnb4",
  fp32: "",
  q4f16: "_q4f16",
  fp16: "_fp16",
} as const;
export type Dtype = keyof typeof DTYPES;
export const DTYPE_NAMES = Object.keys(DTYPES) as Dtype[];

export const weightsPath = (dtype: Dtype): string => `onnx/model${DTYPES[dtype]}.onnx`;
