/**
 * The files inside the binary, by the name under which they are unpacked, with the SHA-256 that the build computed.
 * Only the build can resolve these imports, so this file is imported only in a compiled binary.
 */
import embedConfig from "model:all-minilm-l6-v2/config.json" with { type: "file" };
import embedModel from "model:all-minilm-l6-v2/onnx/model_quantized.onnx" with { type: "file" };
import embedTokenizer from "model:all-minilm-l6-v2/tokenizer.json" with { type: "file" };
import embedTokenizerConfig from "model:all-minilm-l6-v2/tokenizer_config.json" with { type: "file" };
import chatModel from "model:smollm2-135m-instruct/onnx/model_q4.onnx" with { type: "file" };
import chatWeights from "model:smollm2-135m-instruct/onnx/model_q4.onnx_data" with { type: "file" };
import chatTokenizer from "model:smollm2-135m-instruct/tokenizer.json" with { type: "file" };
import chatTokenizerConfig from "model:smollm2-135m-instruct/tokenizer_config.json" with { type: "file" };
import library from "native:library" with { type: "file" };
import binding from "native:onnxruntime_binding.node" with { type: "file" };
import embedConfigSum from "sha256:model:all-minilm-l6-v2/config.json";
import embedModelSum from "sha256:model:all-minilm-l6-v2/onnx/model_quantized.onnx";
import embedTokenizerSum from "sha256:model:all-minilm-l6-v2/tokenizer.json";
import embedTokenizerConfigSum from "sha256:model:all-minilm-l6-v2/tokenizer_config.json";
import chatModelSum from "sha256:model:smollm2-135m-instruct/onnx/model_q4.onnx";
import chatWeightsSum from "sha256:model:smollm2-135m-instruct/onnx/model_q4.onnx_data";
import chatTokenizerSum from "sha256:model:smollm2-135m-instruct/tokenizer.json";
import chatTokenizerConfigSum from "sha256:model:smollm2-135m-instruct/tokenizer_config.json";
import librarySum from "sha256:native:library";
import bindingSum from "sha256:native:onnxruntime_binding.node";
import { LIBRARY } from "./library.ts";

/** A file inside the binary. */
export interface EmbeddedFile {
  path: string;
  /** Of its contents, in hexadecimal. */
  sha256: string;
}

/** By the name under which each is unpacked. */
export type EmbeddedFiles = Readonly<Record<string, EmbeddedFile>>;

const chat = "models/smollm2-135m-instruct";
const embed = "models/all-minilm-l6-v2";

export const embeddedFiles: EmbeddedFiles = {
  // Side by side: the binding looks for the library in its own folder (RUNPATH $ORIGIN).
  [`native/${LIBRARY}`]: { path: library, sha256: librarySum },
  "native/onnxruntime_binding.node": { path: binding, sha256: bindingSum },
  [`${chat}/onnx/model_q4.onnx`]: { path: chatModel, sha256: chatModelSum },
  [`${chat}/onnx/model_q4.onnx_data`]: { path: chatWeights, sha256: chatWeightsSum },
  [`${chat}/tokenizer.json`]: { path: chatTokenizer, sha256: chatTokenizerSum },
  [`${chat}/tokenizer_config.json`]: { path: chatTokenizerConfig, sha256: chatTokenizerConfigSum },
  [`${embed}/onnx/model_quantized.onnx`]: { path: embedModel, sha256: embedModelSum },
  [`${embed}/config.json`]: { path: embedConfig, sha256: embedConfigSum },
  [`${embed}/tokenizer.json`]: { path: embedTokenizer, sha256: embedTokenizerSum },
  [`${embed}/tokenizer_config.json`]: { path: embedTokenizerConfig, sha256: embedTokenizerConfigSum },
};
