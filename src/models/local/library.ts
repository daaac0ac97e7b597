/** The file name of ONNX Runtime's shared library, under which its binding looks for it. */
export const LIBRARIES = { linux: "libonnxruntime.so.1", darwin: "libonnxruntime.1.dylib" } as const;

export const LIBRARY: string = process.platform === "darwin" ? LIBRARIES.darwin : LIBRARIES.linux;
