/** Logs of other libraries for tests. */
/** What `ONEDNN_VERBOSE` prints of all its versions. */
export const ONEDNN_LOG = `onednn_verbose,info,oneDNN v3.1.0 (commit 7f5d6e2)
onednn_verbose,primitive,create:cache_hit,cpu,convolution,jit:avx2,forward_training,,,,mb1ic3ih8oc4kh3,0.1
onednn_verbose,primitive,exec,cpu,convolution,jit:avx2,forward_training,src_f32::blocked:abcd::f0 wei_f32::blocked:Acdb16a::f0 bia_f32::blocked:a::f0 dst_f32::blocked:acdb::f0,attr-scratchpad:user attr-post-ops:eltwise_relu,alg:convolution_direct,mb1_ic3oc64_ih224oh112kh7sh2dh0ph3_iw224ow112kw7sw2dw0pw3,0.5
onednn_verbose,primitive,exec,cpu,reorder,jit:uni,undef,src_f32::blocked:abcd::f0 dst_f32::blocked:acdb::f0,,,1x64x112x112,0.1
onednn_verbose,v1,primitive,exec,cpu,convolution,jit,backward_weights,src:f16::blocked:abcd::f0 wei:f16:a:blocked:Acdb16a::f0,,alg:convolution_direct,g32mb2_ic32oc32_ih14oh14kh3sh1dh1ph2_iw14ow14kw3sw1dw1pw2,0.5
dnnl_verbose,exec,cpu,deconvolution,jit,forward_inference,src_s8::blocked:abcd::f0 wei_s8::blocked:Acdb16a::f0,,alg:deconvolution_direct,mb1_ic64oc32_ih16oh32kh2sh2dh0ph0_iw16ow32kw2sw2dw0pw0,0.5
onednn_verbose,primitive,exec,cpu,matmul,brg,undef,src_f32::blocked:abc::f0 wei_f32::blocked:acb::f0 dst_f32::blocked:abc::f0,,,8x128x64:8x64x32,0.1
onednn_verbose,primitive,exec,cpu,matmul,brg,undef,src_f32::blocked:abc::f0 wei_f32::blocked:abc::f0 dst_f32::blocked:abc::f0,,,8x128x64:1x64x32:8x128x32,0.1
onednn_verbose,primitive,exec,cpu,inner_product,brg,forward_inference,src_bf16::blocked:ab::f0 wei_bf16::blocked:ab::f0 dst_bf16,,,mb8ic512ih7iw7oc1000,0.1
onednn_verbose,primitive,exec,cpu,convolution,jit,backward,src_f32,,,mb1ic3ih8oc4kh3,0.1
`;

/** Commands of MIOpenDriver, short and long. */
export const MIOPEN_LOG =
  `MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver convfp16 -n 128 -c 3 -H 224 -W 224 -k 64 -y 7 -x 7 -p 3 -q 3 -u 2 -v 2 -l 1 -j 1 -m conv -g 1 -F 1 -t 1
./bin/MIOpenDriver conv --batchsize 4 --in_channels 8 --in_h 9 --in_w 9 --out_channels 16 --fil_h 3 --fil_w 3 --group_count 4 -F 6
MIOpenDriver conv -n 1 -c 16 -H 7 -W 7 -k 8 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -m trans -F 1
MIOpenDriver conv -n 2 -c 3 -! 8 -H 8 -W 8 -k 4 -@ 3 -y 3 -x 3 -_ 3 -F 1
MIOpenDriver pool -n 1 -c 3
`;
