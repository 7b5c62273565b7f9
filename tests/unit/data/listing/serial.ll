; ModuleID = 'serial.8a8bf2ad-cgu.0'
source_filename = "serial.8a8bf2ad-cgu.0"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

@alloc_1 = private unnamed_addr constant <{ [9 x i8] }> <{ [9 x i8] c"} define @" }>, align 1

; <core::future::from_generator::GenFuture<T> as core::future::future::Future>::poll
; Function Attrs: nonlazybind uwtable
define internal fastcc { i64, i64 } @"_ZN97_$LT$core..future..from_generator..GenFuture$LT$T$GT$$u20$as$u20$core..future..future..Future$GT$4poll17hf5ba9cc524a55840E"(i64* noundef align 8 %self) unnamed_addr #3 !dbg !10 {
start:
  call void @llvm.dbg.value(metadata i64* %self, metadata !20, metadata !DIExpression()), !dbg !11
  %0 = load i64, i64* %self, align 8, !dbg !12, !range !21, !noundef !22
  %1 = tail call i64 asm sideeffect inteldialect "990: clr rax # } , !dbg \22quoted\22", "=&{ax}"() #9, !dbg !13, !srcloc !23
  br label %bb1, !dbg !14

bb1:                                              ; preds = %start
  ret { i64, i64 } zeroinitializer, !dbg !11
}

; serial::main
; Function Attrs: nonlazybind uwtable
define hidden void @_ZN6serial4main17h0123456789abcdefE() unnamed_addr #0 !dbg !30 {
start:
    #dbg_value(ptr %x, !20, !DIExpression(), !31)
  call void @outside() #4, !dbg !31
  ret void, !dbg !31
}

; Function Attrs: nonlazybind
define i32 @main(i32 %0, i8** %1) unnamed_addr #7 {
top:
  ret i32 0
}

declare void @outside() unnamed_addr #1

attributes #0 = { nonlazybind uwtable "target-cpu"="x86-64" }

!llvm.module.flags = !{!0, !1}
!llvm.dbg.cu = !{!2}

!0 = !{i32 7, !"PIC Level", i32 2}
!1 = !{i32 2, !"Debug Info Version", i32 3}
!2 = distinct !DICompileUnit(language: DW_LANG_Rust, file: !3, producer: "clang LLVM (rustc version 1.63.0)")
!3 = !DIFile(filename: "src/main.rs", directory: "/serial")
!4 = !DINamespace(name: "serial", scope: null)
!5 = !{}
!6 = !DISubroutineType(types: !5)
!7 = distinct !DISubprogram(name: "{async_fn#0}", linkageName: "_ZN6serial11serial_task28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcde1E", scope: !4, file: !3, line: 5, type: !6, unit: !2)
!8 = distinct !DILexicalBlock(scope: !7, file: !3, line: 6, column: 5)
!9 = distinct !DISubprogram(name: "head", linkageName: "_ZN6serial4Uart4head17h0123456789abcde2E", scope: !4, file: !3, line: 20, type: !6, unit: !2)
!10 = distinct !DISubprogram(name: "poll", linkageName: "_ZN97_$LT$core..future..from_generator..GenFuture$LT$T$GT$$u20$as$u20$core..future..future..Future$GT$4poll17hf5ba9cc524a55840E", scope: !4, file: !3, line: 1, type: !6, unit: !2)
!11 = !DILocation(line: 1, column: 1, scope: !10)
!12 = !DILocation(line: 21, column: 9, scope: !9, inlinedAt: !13)
!13 = !DILocation(line: 7, column: 9, scope: !8, inlinedAt: !14)
!14 = !DILocation(line: 2, column: 9, scope: !10)
!15 = !{}
!16 = !{}
!17 = !{}
!18 = !{}
!19 = !{}
!20 = !DILocalVariable(name: "self", scope: !10, file: !3, line: 1)
!21 = !{i64 0, i64 2}
!22 = !{}
!23 = !{i32 12, i32 13}
!24 = !{}
!25 = !{}
!26 = !{}
!27 = !{}
!28 = !{}
!29 = !{}
!30 = distinct !DISubprogram(name: "main", linkageName: "_ZN6serial4main17h0123456789abcdefE", scope: !4, file: !3, line: 30, type: !6, unit: !2)
!31 = !DILocation(line: 31, column: 5, scope: !30)
