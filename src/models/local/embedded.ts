/**
 * The files inside the binary, by the name they are unpacked under. Only the build can resolve these imports, so this
 * file is imported in a compiled binary alone.
 */
import embedConfig from "model:all-minilm-l6-v2/config.json" with { type: "file" };
import embedModel from "model:all-minilm-l6-v2/onnx/model_quantized.onnx" with { type: "file" };
import embedTokenizer from "model:all-minilm-l6-v2/tokenizer.json" with { type: "file" };
import embedTokenizerConfig from "model:all-minilm-l6-v2/tokenizer_config.json" with { type: "file" };
import chatModel from "model:smollm2-135m-instruct/onnx/model_q4.onnx" with { type: "file" };
import chatTokenizer from "model:smollm2-135m-instruct/tokenizer.json" with { type: "file" };
import chatTokenizerConfig from "model:smollm2-135m-instruct/tokenizer_config.json" with { type: "file" };
import library from "native:libonnxruntime.so.1" with { type: "file" };
import binding from "native:onnxruntime_binding.node" with { type: "file" };

export const embeddedFiles: Readonly<Record<string, string>> = {
  // Side by side: the binding looks for the library in its own folder (RUNPATH $ORIGIN).
  "native/libonnxruntime.so.1": library,
  "native/onnxruntime_binding.node": binding,
  "models/smollm2-135m-instruct/onnx/model_q4.onnx": chatModel,
  "models/smollm2-135m-instruct/tokenizer.json": chatTokenizer,
  "models/smollm2-135m-instruct/tokenizer_config.json": chatTokenizerConfig,
  "models/all-minilm-l6-v2/onnx/model_quantized.onnx": embedModel,
  "models/all-minilm-l6-v2/config.json": embedConfig,
  "models/all-minilm-l6-v2/tokenizer.json": embedTokenizer,
  "models/all-minilm-l6-v2/tokenizer_config.json": embedTokenizerConfig,
};
